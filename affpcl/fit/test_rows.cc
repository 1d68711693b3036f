#include "affpcl/fit/test_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/field.h"
#include "affpcl/data/inputs.h"
#include "affpcl/data/tables.h"
#include "affpcl/fit/arrays.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/class_scores.h"

namespace affpcl {
namespace {

std::vector<std::string> outcomes_of(const Encoding& e) {
  return e.outcomes.empty() ? std::vector{e.target} : e.outcomes;
}

// The columns that test rows need; the encoding says which are numbers.
Tables read_tests(const std::vector<std::string>& files, const Encoding& e) {
  const std::vector<std::string> header = tables_header(files, {}, e.reading);
  TableOptions needed{.reading = e.reading};
  const auto need = [&](const std::string& name, bool number) {
    if (name.empty()) return;
    if (std::find(header.begin(), header.end(), name) == header.end())
      throw BadInput(lacks_column(files[0], name, header));
    if (std::find(needed.columns.begin(), needed.columns.end(), name) != needed.columns.end())
      return;
    needed.columns.push_back(name);
    (number ? needed.number : needed.text).push_back(name);
  };
  for (const std::string& name : outcomes_of(e)) need(name, e.classes.empty());
  need(e.agent_column, false);
  for (const Source& s : e.sources) need(s.name, s.levels.empty() && s.dates == DateOrder::kNone);
  for (const std::string* name : {&e.row_weight, &e.trials}) need(*name, true);
  for (const std::string& name : e.offsets()) need(name, true);
  if (e.leveled()) need(e.level_column(), false);
  return read_tables(files, {}, needed);
}

}  // namespace

// Of rank 0: the rows of known agents as numbers, those of others as they are.
class TestRows::Reader {
 public:
  Reader(const std::vector<std::string>& files, const Frame& frame, TestRows& to)
      : frame_(frame), e_(frame.encoding), to_(to), tables_(read_tests(files, e_)) {}

  // Numbers of a row of a known agent: agent, weight, trials, level, class, outcomes, offsets, x.
  std::vector<double> numbers(std::vector<std::string>& notes) {
    check();
    Model model = begin_model(frame_, 0);
    model.agents = begin_agents(frame_);
    model.levels.names = frame_.levels;
    const RowAgents agents = row_agents(tables_, e_.agent_column);
    std::set<std::string> unseen;
    std::vector<double> numbers;
    each_row(model, table(agents), [&](const RowPredictor&, const EncodedRow& at) {
      Row row;
      if (!take(at, row)) return;
      if (at.agent == nullptr) {
        unseen.insert(agents.names[static_cast<std::size_t>(agents.of_row[at.row])]);
        to_.unseen_.push_back(std::move(row));
        return;
      }
      numbers.insert(numbers.end(),
                     {static_cast<double>(at.agent - model.agents.data()), row.weight, row.trials,
                      static_cast<double>(row.level), static_cast<double>(row.truth)});
      for (const std::vector<double>* list : {&row.y, &row.offsets, &row.x})
        numbers.insert(numbers.end(), list->begin(), list->end());
    });
    to_.unseen_agents_ = unseen.size();
    if (numbers.empty())
      throw BadInput(
          fmt::format("{}: no row of an agent of the data can be scored", tables_.parts[0].path));
    add_notes(notes);
    return numbers;
  }

 private:
  const Column* find(const std::string& name) const {
    return name.empty() ? nullptr : tables_.find(name);
  }

  // Values that no row may have, and blanks where the data may have none.
  void check() const {
    const auto refuse = [&](const std::string& name, auto bad, const char* what) {
      const Column* c = find(name);
      for (std::size_t r = 0; c != nullptr && r < tables_.rows; ++r)
        if (bad(c->numbers[r])) tables_.refuse(r, name, fmt::to_string(c->numbers[r]), what);
    };
    refuse(
        e_.row_weight, [](double v) { return !(v >= 0) || std::isinf(v); },
        "is no weight of a row: a number from 0 on");
    refuse(
        e_.trials, [](double v) { return !(v >= 1) || std::isinf(v); },
        "is no number of trials: a number from 1 on");
    check_target();
    if (const Column* agent = find(e_.agent_column))
      for (std::size_t r = 0; r < tables_.rows; ++r)
        if (agent->codes[r] < 0) tables_.refuse(r, agent->name, "", "names no agent");
    for (const Source& s : e_.sources) {
      const Column& c = *tables_.find(s.name);
      for (std::size_t r = 0; r < tables_.rows && s.missing == Missing::kError; ++r)
        if (c.type == Column::Type::kText ? c.codes[r] < 0 : std::isnan(c.numbers[r]))
          tables_.refuse(r, s.name, "",
                         "is missing; `missing mean` fills blanks with the column's mean");
    }
  }

  // Targets that the family cannot have.
  void check_target() const {
    if (!e_.classes.empty()) return;
    const bool counts = e_.family == Family::kPoisson || e_.family == Family::kNegativeBinomial;
    const Column& c = *find(outcomes_of(e_)[0]);
    const Column* const trials = find(e_.trials);
    for (std::size_t r = 0; r < tables_.rows; ++r) {
      const double v = c.numbers[r];
      const bool whole = v >= 0 && v == std::floor(v);
      if (std::isnan(v)) continue;
      if ((counts && !whole) || (e_.family == Family::kGamma && !(v > 0)) ||
          (trials != nullptr && !(whole && v <= trials->numbers[r])))
        tables_.refuse(r, c.name, fmt::to_string(v),
                       fmt::format("is no target of `family {}`", to_text(e_.family)));
    }
  }

  // The columns as each_row() wants them; agents have one of their own.
  DataTable table(const RowAgents& agents) const {
    DataTable t;
    t.path = tables_.parts[0].path, t.rows = static_cast<std::int64_t>(tables_.rows);
    t.columns = tables_.columns;
    if (e_.agent_column.empty()) {
      Column c{.name = "agent", .type = Column::Type::kText};
      c.codes = agents.of_row, c.levels = agents.names;
      t.columns.push_back(std::move(c));
    }
    return t;
  }

  // False where the row cannot be scored.
  bool take(const EncodedRow& at, Row& row) {
    const std::size_t r = at.row;
    const auto blank = [](double v) { return std::isnan(v); };
    if (!take_target(r, row)) {
      ++without_target_;
      return false;
    }
    if (const Column* c = find(e_.row_weight)) row.weight = c->numbers[r];
    if (const Column* c = find(e_.trials)) row.trials = c->numbers[r];
    if (row.weight == 0) return false;
    if (std::any_of(at.x.begin(), at.x.end(), blank) ||
        std::any_of(at.offsets.begin(), at.offsets.end(), blank)) {
      ++blank_;
      return false;
    }
    row.x = at.x;
    row.offsets.assign(at.offsets.begin(), at.offsets.end());
    row.level = at.level;
    return true;
  }

  bool take_target(std::size_t r, Row& row) {
    if (e_.classes.empty()) {
      for (const std::string& name : outcomes_of(e_)) row.y.push_back(find(name)->numbers[r]);
      return std::none_of(row.y.begin(), row.y.end(), [](double v) { return std::isnan(v); });
    }
    row.y.assign(e_.outcomes.empty() ? 1 : e_.outcomes.size(), 0.0);
    const Column& c = *find(e_.target);
    if (c.codes[r] < 0) return false;
    const std::string& text = c.levels[static_cast<std::size_t>(c.codes[r])];
    const auto found = class_named(e_, text, c.decimal);
    if (!found) tables_.refuse(r, c.name, text, "is a class that the data lacks");
    row.truth = *found;
    return true;
  }

  void add_notes(std::vector<std::string>& notes) const {
    const auto rows = [](std::size_t n) {
      return fmt::format("{} test row{}", n, n == 1 ? "" : "s");
    };
    if (without_target_ > 0) notes.push_back(rows(without_target_) + " without a target left out");
    if (blank_ > 0) notes.push_back(rows(blank_) + " with blanks left out");
    if (!to_.unseen_.empty())
      notes.push_back(fmt::format(
          "{} of {} agent{} that the data lacks: scored by the model of unseen "
          "agents, apart from the others",
          rows(to_.unseen_.size()), to_.unseen_agents_, to_.unseen_agents_ == 1 ? "" : "s"));
  }

  const Frame& frame_;
  const Encoding& e_;
  TestRows& to_;
  Tables tables_;
  std::size_t without_target_ = 0, blank_ = 0;
};

TestRows::TestRows(const FrameOptions& o, Team& team, Frame& frame) {
  if (o.test.empty()) return;
  Processes& processes = team.processes();
  std::vector<double> numbers;
  on_all_ranks(processes, [&] {
    if (!o.beside.empty())
      throw BadInput("`test` does not go with files that hold more columns of the same rows");
    if (!processes.first()) return;
    const InputScope once;
    const std::vector<std::string> files = data_files(o.test);
    for (const std::string& file : files)
      if (std::find(frame.files.begin(), frame.files.end(), file) != frame.files.end())
        throw BadInput(fmt::format("{} is both data and `test`", file));
    numbers = Reader(files, frame, *this).numbers(frame.notes);
  });
  frame.held_out.files = o.test;
  broadcast(processes, numbers);
  add_to(frame, team, numbers);
}

void TestRows::add_to(Frame& frame, Team& team, const std::vector<double>& numbers) {
  constexpr std::size_t kBefore = 5;
  const Encoding& e = frame.encoding;
  const std::size_t outcomes = e.outcomes.empty() ? 1 : e.outcomes.size(),
                    offsets = e.offsets().size(), width = kBefore + outcomes + offsets + frame.d;
  const Leaves own = own_agents(frame.agents.size(), team);
  std::vector<const double*> rows;
  for (std::size_t at = 0; at < numbers.size(); at += width)
    if (numbers[at] >= static_cast<double>(own.first) &&
        numbers[at] < static_cast<double>(own.last))
      rows.push_back(numbers.data() + at);
  std::stable_sort(rows.begin(), rows.end(), [](auto a, auto b) { return *a < *b; });

  const std::size_t before = frame.rows, after = before + rows.size();
  // Every column gets the values of the test rows behind its own.
  const auto extend = [&](std::vector<double>& columns, auto value) {
    const std::size_t count = before > 0 ? columns.size() / before : 0;
    std::vector<double> longer;
    longer.reserve(count * after);
    for (std::size_t c = 0; c < count; ++c) {
      const auto from = columns.begin() + static_cast<std::ptrdiff_t>(c * before);
      longer.insert(longer.end(), from, from + static_cast<std::ptrdiff_t>(before));
      for (const double* row : rows) longer.push_back(value(row, c));
    }
    columns = std::move(longer);
  };
  const auto offset = [&](const double* row, std::size_t predictor) {
    return predictor_offsets(e, {row + kBefore + outcomes, offsets})[predictor];
  };
  extend(frame.X,
         [&](const double* row, std::size_t j) { return row[kBefore + outcomes + offsets + j]; });
  extend(frame.Y, [&](const double* row, std::size_t c) {
    const double positive = frame.channels == 1 ? 1 : static_cast<double>(c);
    double y = e.classes.empty()    ? row[kBefore + c]
               : e.generalised()    ? row[4]
               : row[4] == positive ? 1
                                    : 0;
    if (!frame.subtracted.empty()) y -= offset(row, 0);
    return (y - frame.y_mean[c]) / frame.y_sd[c];
  });
  extend(frame.row_weight, [](const double* row, std::size_t) { return row[1]; });
  extend(frame.trials, [](const double* row, std::size_t) { return row[2]; });
  extend(frame.offset, offset);
  extend(frame.subtracted, offset);
  for (const double* row : rows) {
    if (!frame.level.empty()) frame.level.push_back(static_cast<std::int32_t>(row[3]));
    if (!e.classes.empty()) frame.classes.push_back(static_cast<std::int32_t>(row[4]));
  }
  frame.places.resize(after);
  frame.rows = after;
  frame.tests.assign(1, before);
  std::size_t at = 0;
  for (std::size_t i = 0; i < frame.agents.size(); ++i) {
    while (at < rows.size() && *rows[at] == static_cast<double>(i)) ++at;
    frame.tests.push_back(before + at);
  }
}

void TestRows::score_unseen(FitResult& result) const {
  UnseenScore& to = result.unseen;
  to.rows = unseen_.size(), to.agents = unseen_agents_;
  const Encoding& e = result.model.encoding;
  if (unseen_.empty() || !e.outcomes.empty()) return;  // no agent, no weights of outcomes
  const RowPredictor predictor(result.model);
  double weight = 0;
  for (const Row& row : unseen_) {
    if (!e.classes.empty()) {
      const std::vector<double> p = predictor.probabilities(nullptr, row.x, row.offsets);
      to.loss -= std::log(p[row.truth]);
      to.accuracy += std::max_element(p.begin(), p.end()) - p.begin() ==
                     static_cast<std::ptrdiff_t>(row.truth);
      to.brier += row.weight * brier_score(p, row.truth);
    } else {
      const double y = predictor.number(nullptr, row.x, row.offsets, row.level);
      to.loss +=
          e.numeric() ? (row.y[0] - y) * (row.y[0] - y) : predictor.loss(row.y[0], row.trials, y);
    }
    weight += row.weight;
  }
  const auto rows = static_cast<double>(unseen_.size());
  to.loss /= rows, to.accuracy /= rows, to.brier /= weight;
}

}  // namespace affpcl
