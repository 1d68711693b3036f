#include "affpcl/fit/frame.h"

#include <fmt/format.h>
#include <glob.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/base/params.h"
#include "affpcl/data/csv.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace fs = std::filesystem;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// All tables end to end.
struct Data {
  std::vector<CsvTable> tables;
  std::vector<std::size_t> first;  // row of each table
  std::size_t rows = 0;
  std::vector<Column> columns;

  std::size_t table_of(std::size_t row) const {
    return static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), row) -
                                    first.begin()) -
           1;
  }
  [[noreturn]] void refuse(std::size_t row, std::string_view column, std::string_view value,
                           std::string_view what) const {
    const std::size_t t = table_of(row);
    throw BadInput(csv_complaint(tables[t].path,
                                 tables[t].line(static_cast<std::int64_t>(row - first[t])), column,
                                 value, what));
  }
  const Column* find(std::string_view name) const {
    for (const Column& c : columns)
      if (c.name == name) return &c;
    return nullptr;
  }
};

std::string number_text(double value) { return fmt::format("{}", value); }

// The same column of another table, put behind.
void append(Column& to, Column&& from, std::size_t rows_before, std::size_t rows) {
  if (to.type == Column::Type::kNumber && from.type == Column::Type::kNumber) {
    to.numbers.insert(to.numbers.end(), from.numbers.begin(), from.numbers.end());
  } else if (to.type == Column::Type::kText && from.type == Column::Type::kText) {
    std::vector<std::int32_t> code(from.levels.size());
    for (std::size_t l = 0; l < from.levels.size(); ++l) {
      const auto at = std::find(to.levels.begin(), to.levels.end(), from.levels[l]);
      code[l] = static_cast<std::int32_t>(at - to.levels.begin());
      if (at == to.levels.end()) to.levels.push_back(from.levels[l]);
    }
    for (std::int32_t c : from.codes)
      to.codes.push_back(c < 0 ? -1 : code[static_cast<std::size_t>(c)]);
  } else {  // numbers here, texts there: texts, unless a side is all blank
    const auto as_text = [](Column& c, std::size_t n) {
      if (c.type == Column::Type::kText) return;
      c.type = Column::Type::kText;
      std::map<std::string, std::int32_t> known;
      c.codes.clear();
      for (std::size_t r = 0; r < n; ++r) {
        if (std::isnan(c.numbers[r])) {
          c.codes.push_back(-1);
          continue;
        }
        const auto [at, is_new] =
            known.emplace(number_text(c.numbers[r]), static_cast<std::int32_t>(c.levels.size()));
        if (is_new) c.levels.push_back(at->first);
        c.codes.push_back(at->second);
      }
      c.numbers.clear();
    };
    as_text(to, rows_before);
    as_text(from, rows);
    append(to, std::move(from), rows_before, rows);
    return;
  }
  to.missing += from.missing;
}

Data read_all(const std::vector<std::string>& files, const std::string& agent, bool by_file,
              const std::vector<std::string>& wanted) {
  Data data;
  for (const std::string& path : files) {
    CsvOptions options;
    if (!by_file) options.text = {agent};
    options.columns = wanted;
    CsvTable table = read_csv(path, options);
    const std::size_t before = data.rows, rows = static_cast<std::size_t>(table.rows);
    if (data.tables.empty()) {
      data.columns = std::move(table.columns);
    } else {
      for (Column& c : data.columns) {
        if (table.find(c.name) == nullptr) {
          std::vector<std::string> names;
          for (const Column& other : table.columns) names.push_back(other.name);
          throw BadInput(csv_lacks_column(path, c.name, names) + " (" + files[0] + " has it)");
        }
      }
      for (Column& other : table.columns) {
        const auto mine = std::find_if(data.columns.begin(), data.columns.end(),
                                       [&](const Column& c) { return c.name == other.name; });
        if (mine == data.columns.end())
          throw BadInput(
              fmt::format("{} has a column '{}' that {} has not; --exclude it or add it there",
                          path, other.name, files[0]));
        append(*mine, std::move(other), before, rows);
      }
    }
    table.columns.clear();
    data.first.push_back(before);
    data.rows += rows;
    data.tables.push_back(std::move(table));
  }
  return data;
}

// A text among numbers is a slip, not a category.
void refuse_slip(const Data& data, const Column& c) {
  if (c.type != Column::Type::kText) return;
  std::vector<char> number(c.levels.size());
  std::size_t numbers = 0, texts = 0, first = 0;
  for (std::size_t l = 0; l < c.levels.size(); ++l)
    number[l] = parse_number(c.levels[l]).has_value();
  for (std::size_t r = 0; r < c.codes.size(); ++r) {
    if (c.codes[r] < 0) continue;
    if (number[static_cast<std::size_t>(c.codes[r])] != 0) {
      ++numbers;
    } else if (texts++ == 0) {
      first = r;
    }
  }
  if (numbers > texts)
    data.refuse(first, c.name, c.levels[static_cast<std::size_t>(c.codes[first])],
                fmt::format("is not a number, and the column has {} of those; correct it, blank "
                            "it, or --exclude {}",
                            numbers, c.name));
}

bool by_number(const std::string& a, const std::string& b) {
  const auto x = parse_number(a), y = parse_number(b);
  if (x && y) return *x < *y;
  return a < b;
}

std::vector<std::string> sorted_levels(std::vector<std::string> levels) {
  std::sort(levels.begin(), levels.end(), by_number);
  return levels;
}

std::string plural(std::size_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 5); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > 5) text += fmt::format(" and {} more", names.size() - 5);
  return text;
}

}  // namespace

std::size_t Encoding::dim() const {
  std::size_t d = 1;
  for (const Source& s : sources) d += s.width();
  return d;
}

std::vector<std::string> Encoding::names() const {
  std::vector<std::string> all = {"intercept"};
  for (const Source& s : sources) {
    if (s.levels.empty()) all.push_back(s.name);
    for (std::size_t l = 1; l < s.levels.size(); ++l) all.push_back(s.name + "=" + s.levels[l]);
  }
  return all;
}

std::string file_agent(const std::string& path) { return fs::path(path).stem().string(); }

std::vector<std::string> data_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      std::vector<std::string> inside;
      for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
        if (entry.path().extension() == ".csv") inside.push_back(entry.path().string());
      if (inside.empty())
        throw BadInput(fmt::format("the folder {} holds no file that ends in .csv", path));
      std::sort(inside.begin(), inside.end());
      files.insert(files.end(), inside.begin(), inside.end());
    } else if (!fs::exists(path, error) && path.find_first_of("*?[") != std::string::npos) {
      glob_t found{};
      const int code = glob(path.c_str(), 0, nullptr, &found);
      for (std::size_t i = 0; code == 0 && i < found.gl_pathc; ++i)
        files.emplace_back(found.gl_pathv[i]);
      globfree(&found);
      if (code != 0) throw BadInput(fmt::format("no file matches {}", path));
    } else {
      files.push_back(path);
    }
  }
  std::set<std::string> seen;
  for (const std::string& f : files)
    if (!seen.insert(f).second) throw BadInput(fmt::format("{} is given twice", f));
  return files;
}

std::string agent_column(const std::string& path, const std::vector<std::string>& header,
                         const std::string& wanted) {
  if (!wanted.empty()) {
    if (!has(header, wanted)) throw BadInput(csv_lacks_column(path, wanted, header));
    return wanted;
  }
  for (const char* name : {"agent", "site"})
    if (has(header, name)) return name;
  throw BadInput(csv_lacks_column(path, "agent", header) +
                 ": --agent COLUMN names the one that says whose row it is");
}

Frame build_frame(const FrameOptions& o) {
  Frame frame;
  frame.files = data_files(o.paths);
  const bool by_file = frame.files.size() > 1 && o.agent.empty();
  Encoding& encoding = frame.encoding;
  encoding.missing = o.missing;
  encoding.target = o.target;
  {  // everything that can be refused by the header is
    const CsvReader reader(frame.files[0]);
    if (!by_file) encoding.agent_column = agent_column(frame.files[0], reader.header(), o.agent);
    reader.column(o.target);
    if (o.target == encoding.agent_column)
      throw BadInput(fmt::format("column '{}' cannot be both --agent and --target", o.target));
    for (const std::string& name : o.features) {
      reader.column(name);
      if (name == o.target || name == encoding.agent_column)
        throw BadInput(fmt::format("--features names '{}', which is the {}", name,
                                   name == o.target ? "target" : "agent"));
    }
    for (const std::string& name : o.exclude) {
      reader.column(name);
      if (name == o.target)
        throw BadInput(fmt::format("--exclude names '{}', which is the target", name));
    }
  }
  // Columns nobody asked for are not even read.
  std::vector<std::string> wanted;
  if (!o.features.empty() || !o.exclude.empty()) {
    const CsvReader reader(frame.files[0]);
    for (const std::string& name : reader.header()) {
      const bool needed = name == o.target || name == encoding.agent_column;
      const bool feature = (o.features.empty() || has(o.features, name)) && !has(o.exclude, name);
      if (needed || feature) wanted.push_back(name);
    }
  }
  Data data = read_all(frame.files, encoding.agent_column, by_file, wanted);

  // Agents.
  std::vector<std::int32_t> agent(data.rows);
  if (by_file) {
    std::map<std::string, std::string> seen;
    for (std::size_t t = 0; t < data.tables.size(); ++t) {
      frame.agents.push_back(file_agent(frame.files[t]));
      const auto [other, is_new] = seen.emplace(frame.agents[t], frame.files[t]);
      if (!is_new)
        throw BadInput(
            fmt::format("{} and {} would both be the agent '{}'; --agent COLUMN tells them apart",
                        other->second, frame.files[t], frame.agents[t]));
      const std::size_t end = t + 1 < data.tables.size() ? data.first[t + 1] : data.rows;
      std::fill(agent.begin() + static_cast<std::ptrdiff_t>(data.first[t]),
                agent.begin() + static_cast<std::ptrdiff_t>(end), static_cast<std::int32_t>(t));
    }
  } else {
    const Column& c = *data.find(encoding.agent_column);
    for (std::size_t r = 0; r < data.rows; ++r)
      if (c.codes[r] < 0) data.refuse(r, c.name, "", "names no agent");
    agent = c.codes;
    frame.agents = c.levels;
  }

  // Target.
  const Column target = *data.find(o.target);
  std::vector<double> y(data.rows, kNaN);
  std::vector<std::int32_t> classes;
  const bool classify =
      o.task == Task::kClassify || (o.task == Task::kAuto && target.type == Column::Type::kText);
  if (target.type == Column::Type::kText && !(o.task == Task::kClassify)) refuse_slip(data, target);
  if (o.task == Task::kRegress && target.type == Column::Type::kText)
    for (std::size_t r = 0; r < data.rows; ++r)
      if (target.codes[r] >= 0)
        if (const std::string& text = target.levels[static_cast<std::size_t>(target.codes[r])];
            !parse_number(text))
          data.refuse(r, o.target, text, "is not a number, which --task regress needs");
  std::vector<char> keep(data.rows, 1);
  std::size_t no_target = 0, dropped = 0;
  for (std::size_t r = 0; r < data.rows; ++r) {
    const bool blank =
        target.type == Column::Type::kText ? target.codes[r] < 0 : std::isnan(target.numbers[r]);
    if (!blank) continue;
    if (o.missing == Missing::kError)
      data.refuse(r, o.target, "",
                  "is no target; fill it in, or leave such rows out with --missing drop");
    keep[r] = 0;
    ++no_target;
  }
  if (classify) {
    std::vector<std::string> texts(target.type == Column::Type::kText ? 0 : data.rows);
    std::set<std::string> found;
    if (target.type == Column::Type::kText) {
      for (std::size_t r = 0; r < data.rows; ++r)
        if (keep[r] != 0) found.insert(target.levels[static_cast<std::size_t>(target.codes[r])]);
    } else {
      for (std::size_t r = 0; r < data.rows && found.size() <= kMostClasses; ++r)
        if (keep[r] != 0) found.insert(texts[r] = number_text(target.numbers[r]));
    }
    if (found.size() > kMostClasses)
      throw BadInput(fmt::format(
          "{}: the target '{}' has {} {} values, more than {} classes; is it a number to "
          "predict (--task regress)?",
          frame.files[0], o.target, target.type == Column::Type::kText ? "" : "at least",
          found.size(), kMostClasses));
    encoding.classes = sorted_levels({found.begin(), found.end()});
    if (encoding.classes.size() < 2)
      throw BadInput(fmt::format(
          "{}: the target '{}' is '{}' in every row; there is nothing to learn", frame.files[0],
          o.target, encoding.classes.empty() ? "" : encoding.classes[0]));
    std::map<std::string, std::int32_t> code;
    for (std::size_t c = 0; c < encoding.classes.size(); ++c)
      code[encoding.classes[c]] = static_cast<std::int32_t>(c);
    classes.assign(data.rows, -1);
    for (std::size_t r = 0; r < data.rows; ++r)
      if (keep[r] != 0)
        classes[r] = code[target.type == Column::Type::kText
                              ? target.levels[static_cast<std::size_t>(target.codes[r])]
                              : texts[r]];
  } else {
    y = target.numbers;
  }

  // Features: what the columns become, and blanks.
  std::vector<const Column*> columns;
  for (const Column& c : data.columns) {
    if (c.name == o.target || (!by_file && c.name == encoding.agent_column)) continue;
    if (has(o.exclude, c.name) || (!o.features.empty() && !has(o.features, c.name))) continue;
    columns.push_back(&c);
  }
  std::vector<std::string> filled, constant;
  for (const Column* c : columns) {
    refuse_slip(data, *c);
    if (c->type == Column::Type::kText && c->levels.size() > kMostLevels)
      throw BadInput(
          fmt::format("{}: column '{}' holds {} different texts, more than {}; leave it out with "
                      "--exclude {}",
                      frame.files[0], c->name, c->levels.size(), kMostLevels, c->name));
    if (c->missing == 0) continue;
    if (static_cast<std::size_t>(c->missing) < data.rows) filled.push_back(c->name);
    for (std::size_t r = 0; r < data.rows; ++r) {
      const bool blank =
          c->type == Column::Type::kText ? c->codes[r] < 0 : std::isnan(c->numbers[r]);
      if (!blank || static_cast<std::size_t>(c->missing) == data.rows) continue;
      if (o.missing == Missing::kError)
        data.refuse(r, c->name, "",
                    "is missing; --missing mean fills blanks with the column's mean, --missing "
                    "drop leaves such "
                    "rows out");
      if (o.missing == Missing::kDrop) dropped += keep[r] != 0, keep[r] = 0;
    }
  }
  if (no_target > 0)
    frame.notes.push_back(plural(no_target, "row has", "rows have") +
                          " no target and were left out");
  if (dropped > 0) frame.notes.push_back(plural(dropped, "row", "rows") + " with blanks left out");

  // Rows in the order agent, fold.
  std::vector<std::size_t> kept;
  for (std::size_t r = 0; r < data.rows; ++r)
    if (keep[r] != 0) kept.push_back(r);
  {  // agents without rows are none; agents come in the order of their names
    std::vector<std::size_t> count(frame.agents.size());
    for (std::size_t r : kept) ++count[static_cast<std::size_t>(agent[r])];
    std::vector<std::size_t> order;
    for (std::size_t a = 0; a < count.size(); ++a)
      if (count[a] > 0) order.push_back(a);
    if (order.size() < count.size())
      frame.notes.push_back(plural(count.size() - order.size(), "agent has", "agents have") +
                            " no row left");
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return by_number(frame.agents[a], frame.agents[b]);
    });
    std::vector<std::int32_t> place(count.size(), -1);
    std::vector<std::string> names;
    for (std::size_t a : order) {
      place[a] = static_cast<std::int32_t>(names.size());
      names.push_back(frame.agents[a]);
    }
    frame.agents = std::move(names);
    for (std::size_t r : kept) agent[r] = place[static_cast<std::size_t>(agent[r])];
  }
  if (kept.empty())
    throw BadInput(
        fmt::format("{}: no row is left once those with blanks are left out", frame.files[0]));
  frame.rows = kept.size();
  const std::size_t n = frame.agents.size(), N = frame.rows;
  std::stable_sort(kept.begin(), kept.end(),
                   [&](std::size_t a, std::size_t b) { return agent[a] < agent[b]; });
  std::vector<double> draw(N);
  std::vector<std::int32_t> fold(N);
  frame.starts.assign(n * kFolds + 1, 0);
  for (std::size_t first = 0, i = 0; i < n; ++i) {
    std::size_t last = first;
    while (last < N && static_cast<std::size_t>(agent[kept[last]]) == i) ++last;
    const auto id = static_cast<std::int64_t>(i);
    for (std::size_t k = first; k < last; ++k)
      draw[k] = uniform({.seed = o.seed, .replicate = 0, .step = 0}, id, Purpose::kSample,
                        static_cast<std::uint32_t>((k - first) & 0x1FFFFFF));
    std::vector<std::size_t> order(last - first);
    std::iota(order.begin(), order.end(), first);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const std::int32_t ca = classify ? classes[kept[a]] : 0, cb = classify ? classes[kept[b]] : 0;
      return ca != cb ? ca < cb : draw[a] != draw[b] ? draw[a] < draw[b] : a < b;
    });
    // Folds of all agents together stay even: each agent begins with another one.
    for (std::size_t k = 0; k < order.size(); ++k)
      fold[order[k]] = static_cast<std::int32_t>((k + i) % kFolds);
    std::vector<std::size_t> mine;
    for (std::size_t f = 0; f < kFolds; ++f) {
      frame.starts[i * kFolds + f] = first + mine.size();
      for (std::size_t k = first; k < last; ++k)
        if (static_cast<std::size_t>(fold[k]) == f) mine.push_back(kept[k]);
    }
    std::copy(mine.begin(), mine.end(), kept.begin() + static_cast<std::ptrdiff_t>(first));
    first = last;
  }
  frame.starts[n * kFolds] = N;

  // Numbers, column by column; a column is let go as soon as it is copied.
  std::size_t widest = 1;
  for (const Column* c : columns)
    widest += c->type == Column::Type::kText ? std::max<std::size_t>(c->levels.size(), 1) - 1 : 1;
  frame.X.reserve(widest * N);
  frame.X.assign(N, 1.0);
  const auto standardise = [&](std::vector<double>&& v, Source& s) {
    double sum = 0, count = 0;
    for (double x : v)
      if (!std::isnan(x)) sum += x, ++count;
    const double mean = count > 0 ? sum / count : 0;
    double square = 0;
    for (double x : v)
      if (!std::isnan(x)) square += (x - mean) * (x - mean);
    const double sd = count > 0 ? std::sqrt(square / count) : 0;
    if (!(sd > 1e-12 * std::abs(mean)) || !std::isfinite(sd)) return false;
    for (double& x : v) x = std::isnan(x) ? 0 : (x - mean) / sd;
    frame.X.insert(frame.X.end(), v.begin(), v.end());
    s.mean.push_back(mean);
    s.sd.push_back(sd);
    return true;
  };
  for (const Column* c : columns) {
    Source s{.name = c->name, .levels = {}, .mean = {}, .sd = {}};
    std::vector<double> v(N);
    if (c->type == Column::Type::kNumber) {
      for (std::size_t k = 0; k < N; ++k) v[k] = c->numbers[kept[k]];
      if (!standardise(std::move(v), s)) {
        constant.push_back(c->name);
        continue;
      }
    } else {
      std::set<std::string> found;
      for (std::size_t k = 0; k < N; ++k)
        if (c->codes[kept[k]] >= 0)
          found.insert(c->levels[static_cast<std::size_t>(c->codes[kept[k]])]);
      if (found.size() < 2) {
        constant.push_back(c->name);
        continue;
      }
      s.levels = sorted_levels({found.begin(), found.end()});
      for (std::size_t l = 1; l < s.levels.size(); ++l) {
        for (std::size_t k = 0; k < N; ++k) {
          const std::int32_t code = c->codes[kept[k]];
          v[k] = code < 0                                                   ? kNaN
                 : c->levels[static_cast<std::size_t>(code)] == s.levels[l] ? 1.0
                                                                            : 0.0;
        }
        standardise(std::vector<double>(v), s);
      }
    }
    encoding.sources.push_back(std::move(s));
    std::vector<double>().swap(const_cast<Column*>(c)->numbers);
  }
  if (!constant.empty())
    frame.notes.push_back(fmt::format("left out, since constant: {}", listed(constant)));
  if (!filled.empty() && o.missing == Missing::kMean)
    frame.notes.push_back(
        fmt::format("blanks filled with the column's mean in {}", listed(filled)));
  if (encoding.sources.empty())
    throw BadInput(fmt::format(
        "{}: no feature is left beside target and agent{}", frame.files[0],
        constant.empty() ? "" : "; constant columns teach nothing: " + listed(constant)));
  frame.d = encoding.dim();
  frame.channels = encoding.channels();

  frame.Y.resize(frame.channels * N);
  if (classify) frame.classes.resize(N);
  for (std::size_t k = 0; k < N && classify; ++k) frame.classes[k] = classes[kept[k]];
  for (std::size_t c = 0; c < frame.channels; ++c) {
    double* const out = frame.Y.data() + c * N;
    for (std::size_t k = 0; k < N; ++k)
      out[k] = !classify
                   ? y[kept[k]]
                   : frame.classes[k] == static_cast<std::int32_t>(frame.channels == 1 ? 1 : c);
    double sum = 0, square = 0;
    for (std::size_t k = 0; k < N; ++k) sum += out[k];
    const double mean = sum / static_cast<double>(N);
    for (std::size_t k = 0; k < N; ++k) square += (out[k] - mean) * (out[k] - mean);
    const double sd = std::sqrt(square / static_cast<double>(N));
    if (!(sd > 1e-12 * std::abs(mean)))
      throw BadInput(
          fmt::format("{}: the target '{}' is {} in every row; there is nothing to learn",
                      frame.files[0], o.target, mean));
    for (std::size_t k = 0; k < N; ++k) out[k] = (out[k] - mean) / sd;
    frame.y_mean.push_back(mean);
    frame.y_sd.push_back(sd);
  }
  return frame;
}

Moments Frame::moments(std::size_t channel, int without, Team& team) const {
  using Matrix = Eigen::MatrixXd;
  Moments m(agents.size(), d);
  const auto D = static_cast<Eigen::Index>(d);
  const auto all = static_cast<Eigen::Index>(rows);
  const Eigen::Map<const Matrix> x(X.data(), all, D);
  const Eigen::Map<const Eigen::VectorXd> y(Y.data() + channel * rows, all);
  team.each(static_cast<std::int64_t>(agents.size()), [&](std::int64_t agent, int) {
    const auto i = static_cast<std::size_t>(agent);
    Eigen::Map<Matrix> A(m.A.data() + i * d * d, D, D);
    Eigen::Map<Eigen::VectorXd> b(m.b.data() + i * d, D);
    const auto add = [&](std::size_t from, std::size_t to) {
      constexpr std::size_t kRows = 512;  // at a time: they stay in cache
      for (; from < to; from += kRows) {
        const auto at = static_cast<Eigen::Index>(from);
        const auto count = static_cast<Eigen::Index>(std::min(kRows, to - from));
        const Matrix block = x.middleRows(at, count);
        A.selfadjointView<Eigen::Lower>().rankUpdate(block.transpose());
        b.noalias() += block.transpose() * y.segment(at, count);
        m.yy[i] += y.segment(at, count).squaredNorm();
        m.rows[i] += static_cast<double>(count);
      }
    };
    if (without < 0) {
      add(begin(i, 0), begin(i + 1, 0));
    } else {
      add(begin(i, 0), begin(i, without));
      add(begin(i, without + 1), begin(i + 1, 0));
    }
    A.triangularView<Eigen::StrictlyUpper>() = A.transpose();
  });
  return m;
}

}  // namespace affpcl
