#define XXH_INLINE_ALL

#include "affpcl/table/frame.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/data/inputs.h"
#include "affpcl/data/weights.h"
#include "affpcl/random/streams.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/class_basis.h"
#include "affpcl/table/folds_by_column.h"
#include "affpcl/table/known.h"
#include "affpcl/table/levels.h"
#include "affpcl/table/shared_tables.h"
#include "affpcl/table/site_tables.h"

namespace affpcl {
namespace {

// Agents in the order of their names, those without a row left out. A site has its own agents first;
// those of other sites follow without names and rows.
void settle_agents(RowAgents& agents, const std::vector<char>& keep, Team& team, Frame& frame) {
  Processes& processes = team.processes();
  std::vector<double> count(agents.names.size());
  for (std::size_t r = 0; r < keep.size(); ++r)
    if (keep[r] != 0) ++count[static_cast<std::size_t>(agents.of_row[r])];
  if (!processes.apart()) sum(processes, count);
  std::vector<std::size_t> order;
  for (std::size_t a = 0; a < count.size(); ++a)
    if (count[a] > 0) order.push_back(a);
  if (order.empty())
    throw BadInput(
        fmt::format("{}: no row is left once those with blanks are left out", frame.files[0]));
  if (const std::size_t gone = count.size() - order.size(); gone > 0)
    frame.notes.push_back(
        fmt::format("{} {} no row left", gone, gone == 1 ? "agent has" : "agents have"));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return by_number(agents.names[a], agents.names[b]);
  });
  std::vector<std::int32_t> place(count.size(), -1);
  for (std::size_t a : order) {
    place[a] = static_cast<std::int32_t>(frame.agents.size());
    frame.agents.push_back(agents.names[a]);
  }
  for (std::int32_t& a : agents.of_row) a = place[static_cast<std::size_t>(a)];
  if (!processes.apart()) return;
  processes.set_purpose("number of agents");
  team.set_agents({0, std::ssize(frame.agents)});
  frame.agents.resize(sum(processes, frame.agents.size()));
}

// A site takes part in what is a sum over agents.
void refuse_apart(const FrameOptions& o) {
  const std::pair<const char*, bool> refused[] = {{"within", !o.within.empty()},
                                                  {"crossed", !o.crossed.empty()},
                                                  {"folds", !o.folds.empty()},
                                                  {"test", !o.test.empty()}};
  for (const auto& [name, given] : refused)
    if (given) throw BadInput(fmt::format("`{}` is not available in a federation", name));
}

// Sends values of rows to the processes that own the rows' agents. There they are in the order in
// which a process alone would have read them.
class Delivery {
 public:
  Delivery(const std::vector<char>& keep, const RowAgents& agents, std::size_t count, Team& team)
      : processes_(team.processes()), to_(static_cast<std::size_t>(processes_.count())) {
    std::vector<std::vector<std::size_t>> for_rank(to_.size());
    std::vector<std::size_t> owner(count);
    for (std::size_t r = 0; r < to_.size(); ++r) {
      const Leaves own = agents_in(team.own(agent_leaves(count), static_cast<int>(r)), count);
      std::fill(owner.begin() + own.first, owner.begin() + own.last, r);
    }
    for (std::size_t r = 0; r < keep.size(); ++r)
      if (keep[r] != 0) for_rank[owner[static_cast<std::size_t>(agents.of_row[r])]].push_back(r);
    std::vector<double> sizes;
    for (std::size_t r = 0; r < to_.size(); ++r) {
      order_.insert(order_.end(), for_rank[r].begin(), for_rank[r].end());
      sizes.push_back(static_cast<double>(to_[r] = for_rank[r].size()));
    }
    const std::vector<std::size_t> one(to_.size(), 1);
    std::vector<double> from(to_.size());
    all_to_all(processes_, sizes, one, one, from);
    from_.assign(from.begin(), from.end());
    mine_.reserve(order_.size());
    theirs_.resize(rows());
  }

  std::size_t rows() const { return std::accumulate(from_.begin(), from_.end(), std::size_t{0}); }
  // Room once taken is kept: a column freed and taken again would leave a hole in memory.
  template <class T>
  void operator()(std::vector<T>& values) {
    mine_.clear();
    for (std::size_t r : order_) mine_.push_back(static_cast<double>(values[r]));
    all_to_all(processes_, mine_, to_, from_, theirs_);
    values.assign(theirs_.begin(), theirs_.end());
  }

 private:
  Processes& processes_;
  std::vector<std::size_t> order_, to_, from_;  // rows by receiver; how many
  std::vector<double> mine_, theirs_;           // one column on its way
};

// The kept rows of this rank's own agents, from the ranks that read them.
void deliver(Tables& tables, const std::vector<Column*>& features, Target& target,
             const Encoding& e, RowAgents& agents, RowAgents& levels, RowAgents& folds,
             std::vector<double>* time, std::vector<char>& keep, std::size_t count, Team& team) {
  Delivery delivery(keep, agents, count, team);
  for (Column* c : features)
    c->type == Column::Type::kText ? delivery(c->codes) : delivery(c->numbers);
  for (std::size_t c = 0; c < target.numbers.size(); ++c)
    delivery(tables.find(target.names[c])->numbers);
  if (target.numbers.empty()) delivery(target.classes);
  for (const std::string* name : {&e.row_weight, &e.trials})
    if (!name->empty()) delivery(tables.find(*name)->numbers);
  for (const std::string& name : e.offsets()) delivery(tables.find(name)->numbers);
  delivery(agents.of_row);
  if (e.leveled()) delivery(levels.of_row);
  if (!folds.names.empty()) delivery(folds.of_row);
  if (time != nullptr) delivery(*time);
  tables.rows = delivery.rows();
  keep.assign(tables.rows, 1);
}

// The kept rows, agent after agent, each agent's as they came, or by time.
std::vector<std::size_t> by_agent(const std::vector<char>& keep, const RowAgents& agents,
                                  const std::vector<double>& time) {
  std::vector<std::size_t> rows;
  for (std::size_t r = 0; r < keep.size(); ++r)
    if (keep[r] != 0) rows.push_back(r);
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    if (agents.of_row[a] != agents.of_row[b]) return agents.of_row[a] < agents.of_row[b];
    return !time.empty() && time[a] < time[b];
  });
  return rows;
}

// The decimal mark of the files; '\0' where they have no text.
char read_decimal(const Tables& tables) {
  for (const Column& c : tables.columns)
    if (c.decimal != '.') return c.decimal;
  return tables.columns.empty() ? '\0' : '.';
}

// The fold of each of one agent's rows, by place. Folds of all agents together stay even: each agent
// begins with one of its own. Classes are not spread evenly over folds: held-out rows would have the
// shares of the training rows, more alike than new rows are, and models of few rows would seem right.
std::vector<std::size_t> folds_of(const std::string& name, std::size_t count, std::size_t folds,
                                  std::uint64_t seed, std::uint32_t repeat) {
  const XXH64_hash_t agent = XXH3_64bits(name.data(), name.size());
  std::vector<double> draw(count + 1);
  uniforms_of({.seed = seed, .replicate = repeat, .step = 0}, static_cast<std::int64_t>(agent),
              Purpose::kSample, draw);
  std::vector<std::size_t> order(count), fold(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return draw[a + 1] != draw[b + 1] ? draw[a + 1] < draw[b + 1] : a < b;
  });
  const auto first = static_cast<std::size_t>(draw[0] * static_cast<double>(folds));
  for (std::size_t k = 0; k < count; ++k) fold[order[k]] = (k + first) % folds;
  return fold;
}

// Where each agent's rows begin, which come agent after agent; all in the first fold.
void arrange(const std::vector<std::size_t>& rows, const RowAgents& agents, Frame& frame) {
  frame.rows = rows.size();
  for (std::size_t at = 0, i = 0; i < frame.agents.size(); ++i) {
    const std::size_t first = at;
    while (at < rows.size() && static_cast<std::size_t>(agents.of_row[rows[at]]) == i)
      frame.places.push_back(static_cast<std::uint32_t>(at++ - first));
    frame.starts.push_back(first);
    frame.starts.insert(frame.starts.end(), static_cast<std::size_t>(frame.folds()) - 1, at);
  }
  frame.starts.push_back(rows.size());
}

// The targets of the rows, in their order, centred and scaled.
void set_outcomes(const Target& target, const std::vector<std::size_t>& rows,
                  const AgentRows& by_agent, const KnownColumns* known, Team& team, Frame& frame) {
  const bool classify = target.numbers.empty();
  frame.channels = classify ? frame.encoding.channels() : target.numbers.size();
  if (classify)
    for (std::size_t r : rows) frame.classes.push_back(target.classes[r]);
  if (frame.encoding.generalised() && !frame.encoding.numeric()) {
    for (std::size_t k = 0; k < rows.size(); ++k)
      frame.Y.push_back(classify ? frame.classes[k] : (*target.numbers[0])[rows[k]]);
    std::vector<double> copy = frame.Y;
    if (known == nullptr && !standardise(copy, 1, by_agent, team)[0].varies() &&
        frame.encoding.trials.empty())
      throw BadInput(
          fmt::format("{}: the target '{}' is the same in every row; there is nothing "
                      "to learn",
                      frame.files[0], target.names[0]));
    frame.y_mean = {0}, frame.y_sd = {1};
    return;
  }
  frame.Y.resize(frame.channels * rows.size());
  for (std::size_t c = 0; c < frame.channels; ++c) {
    double* const y = frame.Y.data() + c * rows.size();
    const auto positive = static_cast<std::int32_t>(frame.channels == 1 ? 1 : c);
    for (std::size_t k = 0; k < rows.size(); ++k)
      y[k] = classify ? frame.classes[k] == positive : (*target.numbers[c])[rows[k]];
    for (std::size_t k = 0; k < frame.subtracted.size(); ++k) y[k] -= frame.subtracted[k];
    for (std::size_t k = 0; k < rows.size() && known != nullptr; ++k)
      y[k] = (y[k] - known->y_mean[c]) / known->y_sd[c];
  }
  if (known != nullptr) {
    frame.y_mean = known->y_mean, frame.y_sd = known->y_sd;
    return;
  }
  for (std::size_t c = 0;
       const Scale& scale : standardise(frame.Y, frame.channels, by_agent, team)) {
    const bool explained = !frame.subtracted.empty() && std::isfinite(scale.sd);
    if (!scale.varies() && !explained)
      throw BadInput(
          fmt::format("{}: the target '{}' {}", frame.files[0], target.names[classify ? 0 : c],
                      std::isfinite(scale.sd)
                          ? fmt::format("is {} in every row; there is nothing to learn", scale.mean)
                          : "holds numbers whose squares are too large for a double"));
    // What an offset explains is left as it is, a constant.
    frame.y_mean.push_back(scale.varies() ? scale.mean : 0);
    frame.y_sd.push_back(scale.varies() ? scale.sd : 1);
    ++c;
  }
}

// Weights are at least 0, numbers of trials at least 1, and offsets have a linear predictor.
void refuse_row_columns(const Tables& tables, const Encoding& e, const std::vector<char>& keep,
                        Processes& processes) {
  const auto check = [&](const std::string& name, auto bad, const char* what) {
    if (name.empty()) return;
    const Column& c = *tables.find(name);
    on_all_ranks(processes, [&] {
      for (std::size_t r = 0; r < tables.rows; ++r)
        if (keep[r] != 0 && bad(c.numbers[r]))
          tables.refuse(r, name, fmt::to_string(c.numbers[r]), what);
    });
  };
  check(
      e.row_weight, [](double v) { return !(v >= 0) || std::isinf(v); },
      "is no weight of a row: a number from 0 on");
  check(
      e.trials, [](double v) { return !(v >= 1) || std::isinf(v); },
      "is no number of trials: a number from 1 on");
  const std::vector<std::string> offsets = e.offsets();
  for (const std::string& name : offsets)
    check(
        name, [&](double v) { return !std::isfinite(linked(e, v)); },
        "is no offset: a finite number, on the response scale a possible mean or probability");
  const std::size_t wanted = e.family == Family::kMultinomial ? e.classes.size() : 1;
  if (!offsets.empty() && offsets.size() != wanted)
    throw BadInput(fmt::format("`offset` names {} column{}, and `family {}` needs {}",
                               offsets.size(), offsets.size() == 1 ? "" : "s", to_text(e.family),
                               wanted == 1 ? "one"
                                           : fmt::format("{}, one for each class in the order {}",
                                                         wanted, join(e.classes, ", "))));
}

// The columns that belong to rows.
void set_row_columns(const Tables& tables, const std::vector<std::size_t>& rows, Frame& frame) {
  const Encoding& e = frame.encoding;
  const auto take = [&](const std::string& name, std::vector<double>& to) {
    if (name.empty()) return;
    const std::vector<double>& numbers = tables.find(name)->numbers;
    for (std::size_t r : rows) to.push_back(numbers[r]);
  };
  take(e.row_weight, frame.row_weight);
  take(e.trials, frame.trials);
  std::vector<const std::vector<double>*> columns;
  for (const std::string& name : e.offsets()) columns.push_back(&tables.find(name)->numbers);
  if (columns.empty()) return;
  std::vector<double> of_row(columns.size());
  const std::size_t predictors = e.family == Family::kMultinomial ? columns.size() - 1 : 1;
  std::vector<double>& offset = e.numeric() ? frame.subtracted : frame.offset;
  offset.resize(predictors * rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    for (std::size_t c = 0; c < columns.size(); ++c) of_row[c] = (*columns[c])[rows[k]];
    const std::vector<double> eta = predictor_offsets(e, of_row);
    for (std::size_t a = 0; a < predictors; ++a) offset[a * rows.size() + k] = eta[a];
  }
}

}  // namespace

std::vector<double> predictor_offsets(const Encoding& e, std::span<const double> offsets) {
  if (e.family != Family::kMultinomial) return {linked(e, offsets[0])};
  Vector logits;
  for (double offset : offsets) logits.push_back(linked(e, offset));
  return multiply(transposed(class_basis(logits.size())), logits);
}

double linked(const Encoding& e, double offset) {
  if (e.offset_scale == OffsetScale::kLink) return offset;
  switch (e.family) {
    case Family::kBinomial:
    case Family::kOrdinal:
      return std::log(offset / (1 - offset));
    case Family::kMultinomial:
    case Family::kPoisson:
    case Family::kNegativeBinomial:
    case Family::kGamma:
      return std::log(offset);
    default:
      return offset;
  }
}

Frame build_frame(const FrameOptions& o) { return build_frame(o, *serial_team()); }

Frame build_frame(const FrameOptions& o, Team& team, RowOrder order) {
  const InputScope once;
  Processes& processes = team.processes();
  std::vector<std::string> files, header;
  Encoding encoding;
  if (processes.apart()) {
    refuse_apart(o);
    files = data_files(o.paths);
    header = tables_header(files, o.beside, o.reading);
    encoding = begin_encoding(files, header, o);
    Tables own = read_site(files, header, o, encoding, processes);
    return build_frame(std::move(own), std::move(encoding), o, team, order);
  }
  on_all_ranks(processes, [&] {
    if (!processes.first()) return;
    files = data_files(o.paths);
    header = tables_header(files, o.beside, o.reading);
  });
  broadcast(processes, files);
  broadcast(processes, header);
  on_all_ranks(processes, [&] { encoding = begin_encoding(files, header, o); });
  Tables tables =
      read_shared(files, header, o.beside, columns_needed(header, o, encoding), processes);
  if (!o.known) merge_rare_levels(tables, o, encoding, processes);
  const std::string unused = o.known ? unused_note(header, o, encoding) : "";
  Frame frame = build_frame(std::move(tables), std::move(encoding), o, team, order);
  if (!unused.empty()) frame.notes.push_back(unused);
  return frame;
}

Frame build_frame(Tables tables, Encoding encoding, const FrameOptions& o) {
  return build_frame(std::move(tables), std::move(encoding), o, *serial_team());
}

Frame build_frame(Tables tables, Encoding begun, const FrameOptions& o, Team& team,
                  RowOrder order) {
  Processes& processes = team.processes();
  Frame frame;
  for (const auto& part : tables.parts) frame.files.push_back(part.path);
  if (o.known) {
    frame.joined = true, frame.within = o.known->within;
    if (std::string note = known_note(*o.known); !note.empty())
      frame.notes.push_back(std::move(note));
  }
  Encoding& encoding = frame.encoding = std::move(begun);
  std::vector<char> keep(tables.rows, 1);
  Problems problems;
  const Marked marked{keep, frame.notes, problems};
  RowAgents agents = encode_agents(tables, o, processes, encoding, marked);
  check_row_columns(tables, o, processes, encoding, marked);
  RowAgents levels =
      encode_names(encoding.leveled() ? encoding.level_column() : "", tables, o, processes, marked);
  RowAgents folds = encode_names(o.folds, tables, o, processes, marked);
  Target target = encode_target(tables, o, processes, encoding, marked);
  const std::vector<Column*> features = feature_columns(tables, o, processes, encoding, marked);
  strike_blanks(tables, features, o.missing, processes, marked);
  problems.refuse(processes);
  encode_classes(tables, o, processes, encoding, target, marked);
  refuse_row_columns(tables, encoding, keep, processes);
  if (const std::string& as = tables.parts[0].read_as; !as.empty())
    frame.notes.push_back("read with " + as);
  if (const char decimal = read_decimal(tables); decimal != '\0')
    encoding.reading.decimal_before = decimal;

  settle_agents(agents, keep, team, frame);
  frame.levels = settle_names(levels, keep, processes);
  const bool in_folds = order == RowOrder::kInFolds;
  std::vector<double> time;
  on_all_ranks(processes, [&] { time = row_times(tables, o.time, keep, in_folds); });
  if (in_folds) frame.held_out = settle_folds(o, folds, keep, frame.files[0], processes);
  if (processes.count() > 1 && !processes.apart())
    deliver(tables, features, target, encoding, agents, levels, folds,
            o.time.empty() ? nullptr : &time, keep, frame.agents.size(), team);
  const std::vector<std::size_t> rows = by_agent(keep, agents, time);
  arrange(rows, agents, frame);
  frame.all_rows = sum(processes, frame.rows);
  set_row_columns(tables, rows, frame);
  AgentRows agent_rows{.first = {}, .weight = frame.row_weight};
  for (std::size_t i = 0; i <= frame.agents.size(); ++i)
    agent_rows.first.push_back(frame.begin(i, 0));
  frame.X =
      o.known ? encode_known(features, rows, processes, encoding, frame.notes)
              : encode_features(features, rows, agent_rows, o.missing, team, encoding, frame.notes);
  frame.notes.push_back(columns_note(encoding));
  frame.d = encoding.dim();
  set_outcomes(target, rows, agent_rows, o.known.get(), team, frame);
  for (std::size_t r : rows)
    if (encoding.leveled()) frame.level.push_back(levels.of_row[r]);
  check_levels(frame, processes);
  if (!o.weights.empty())
    on_all_ranks(processes, [&] {
      std::vector<std::string> own = frame.agents;
      if (processes.apart()) own.resize(static_cast<std::size_t>(team.agents().count()));
      frame.theta =
          read_weights(o.weights, encoding.agent_column.empty() ? "agent" : encoding.agent_column,
                       o.channels, own, frame.files[0]);
      frame.theta.resize(frame.agents.size() * o.channels.size());
    });
  if (frame.held_out.how == Holdout::kNamed) {
    frame.put_in_folds([&](std::size_t, const std::vector<std::size_t>& at) {
      std::vector<std::size_t> of;
      for (std::size_t r : at) of.push_back(static_cast<std::size_t>(folds.of_row[rows[r]]));
      return of;
    });
  } else if (frame.held_out.how == Holdout::kForward) {
    frame.put_in_folds([&](std::size_t, const std::vector<std::size_t>& at) {
      std::vector<double> times;
      for (std::size_t r : at) times.push_back(time[rows[r]]);
      return time_blocks(times, frame.folds());
    });
    refuse_one_time(frame, processes);
  } else if (in_folds) {
    frame.deal(o.seed, 0);
  }
  return frame;
}

std::array<Frame::Run, 2> Frame::training(std::size_t agent, int without) const {
  const std::size_t first = begin(agent, 0), last = begin(agent + 1, 0);
  if (without == kAllRows) return {{{first, last}, {last, last}}};
  const bool later = held_out.how != Holdout::kForward;
  return {{{first, begin(agent, without)}, {later ? begin(agent, without + 1) : last, last}}};
}

void Frame::deal(std::uint64_t seed, std::uint32_t repeat) {
  put_in_folds([&](std::size_t i, const std::vector<std::size_t>& at) {
    return folds_of(agents[i], at.size(), static_cast<std::size_t>(folds()), seed, repeat);
  });
}

void Frame::put_in_folds(
    FunctionRef<std::vector<std::size_t>(std::size_t, const std::vector<std::size_t>&)> of) {
  std::vector<std::size_t> order(rows);  // where each row is to come from
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const std::size_t first = begin(i, 0), count = agent_rows(i);
    if (count == 0) continue;
    std::vector<std::size_t> at(count);
    for (std::size_t r = 0; r < count; ++r) at[places[first + r]] = first + r;
    const std::vector<std::size_t> fold = of(i, at);
    std::size_t to = first;
    for (std::size_t f = 0; f < static_cast<std::size_t>(folds()); ++f) {
      starts[i * static_cast<std::size_t>(folds()) + f] = to;
      for (std::size_t place = 0; place < count; ++place)
        if (fold[place] == f) order[to++] = at[place];
    }
  }
  const auto reorder = [&]<class T>(T* column, std::vector<T>& memory) {
    memory.assign(column, column + rows);
    for (std::size_t r = 0; r < rows; ++r) column[r] = memory[order[r]];
  };
  std::vector<double> memory;
  for (std::size_t j = 0; j < d; ++j) reorder(X.data() + j * rows, memory);
  for (std::size_t at = 0; at < Y.size(); at += rows) reorder(Y.data() + at, memory);
  for (std::vector<double>* columns : {&row_weight, &trials, &offset, &subtracted})
    for (std::size_t at = 0; at < columns->size(); at += rows)
      reorder(columns->data() + at, memory);
  std::vector<std::int32_t> labels;
  for (std::vector<std::int32_t>* column : {&classes, &level})
    if (!column->empty()) reorder(column->data(), labels);
  std::vector<std::uint32_t> numbers;
  reorder(places.data(), numbers);
}

std::vector<std::size_t> Frame::in_groups(std::size_t groups, Team& team) const {
  constexpr int kBits = 10;  // of the hash
  const Leaves own = own_agents(agents.size(), team);
  std::vector<std::size_t> bucket;
  std::vector<double> before(std::size_t{1} << kBits);
  for (std::int64_t i = own.first; i < own.last; ++i) {
    const std::string& name = agents[static_cast<std::size_t>(i)];
    bucket.push_back(XXH3_64bits(name.data(), name.size()) >> (64 - kBits));
    ++before[bucket.back()];
  }
  sum(team.processes(), before);
  std::exclusive_scan(before.begin(), before.end(), before.begin(), 0.0);
  for (std::size_t& b : bucket) b = static_cast<std::size_t>(before[b]) % groups;
  return bucket;
}

double Frame::wanted(std::size_t agent, std::size_t row) const {
  if (theta.empty()) return y(0, row) + (subtracted.empty() ? 0 : subtracted[row]);
  double sum = 0;
  for (std::size_t c = 0; c < channels; ++c) sum += theta[agent * channels + c] * y(c, row);
  return sum;
}

Matrix Frame::block(std::size_t from, std::size_t count) const {
  Matrix part(d, count);
  for (std::size_t j = 0; j < d; ++j)
    std::copy_n(X.begin() + static_cast<std::ptrdiff_t>(j * rows + from), count,
                part.row(j).begin());
  return part;
}

double Frame::weigh(std::size_t from, Matrix& x, Vector& y) const {
  double total = 0;
  for (std::size_t k = 0; k < y.size(); ++k) {
    const double root = std::sqrt(row_weight[from + k]);
    for (std::size_t j = 0; j < d; ++j) x(j, k) *= root;
    y[k] *= root;
    total += row_weight[from + k];
  }
  return total;
}

Moments Frame::moments(std::size_t channel, int without, Team& team) const {
  Moments m(agents.size(), d, own_agents(agents.size(), team));
  team.each(own_agents(agents.size(), team), [&](std::int64_t agent, int) {
    const auto i = static_cast<std::size_t>(agent);
    const std::size_t held = m.at(i);
    const MatrixSpan A(m.A.data() + held * d * d, d, d);
    Vector b(d);
    const auto add = [&](std::size_t from, std::size_t to) {
      constexpr std::size_t kRows = 512;  // at a time: they stay in cache
      for (; from < to; from += kRows) {
        const std::size_t count = std::min(kRows, to - from);
        Matrix x = block(from, count);
        Vector y(Y.begin() + static_cast<std::ptrdiff_t>(channel * rows + from),
                 Y.begin() + static_cast<std::ptrdiff_t>(channel * rows + from + count));
        m.rows[held] += row_weight.empty() ? static_cast<double>(count) : weigh(from, x, y);
        add_gram(1, x, A);
        multiply(x, y, b);
        for (std::size_t j = 0; j < d; ++j) m.b[held * d + j] += b[j];
        m.yy[held] += squared_norm(y);
      }
    };
    for (const Run run : training(i, without)) add(run.from, run.to);
  });
  return m;
}

}  // namespace affpcl
