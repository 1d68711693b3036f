// How the columns of a table become numbers: texts, blanks, classes, means and deviations. What
// predictions need of it later is the Encoding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/data/dates.h"
#include "affpcl/data/read_options.h"
#include "affpcl/table/family.h"

namespace affpcl {

class Processes;
class Team;
struct Column;
struct KnownColumns;
struct RowAgents;
struct TableOptions;
struct Tables;

inline constexpr std::size_t kMostClasses = 100;  // of a target

enum class Missing { kError, kMean, kDrop, kIndicator };
template <>
struct EnumNames<Missing> {
  static constexpr std::array<std::string_view, 4> all = {"error", "mean", "drop", "indicator"};
};

// What becomes of missing values, by column.
struct MissingRule {
  MissingRule(Missing all = Missing::kError) : rest(all) {}
  static MissingRule parse(std::string_view text);  // "mean,age=drop"
  Missing at(const std::string& column) const;
  bool operator==(const MissingRule&) const = default;

  Missing rest;
  std::map<std::string, Missing> of = {};
};

enum class Task { kAuto, kRegress, kClassify };
template <>
struct EnumNames<Task> {
  static constexpr std::array<std::string_view, 3> all = {"auto", "regress", "classify"};
};

enum class OffsetScale { kLink, kResponse };  // of the linear predictor, or of the mean
template <>
struct EnumNames<OffsetScale> {
  static constexpr std::array<std::string_view, 2> all = {"link", "response"};
};

// A column of the table that models use: one number, or one 0/1 number for every level but the
// first.
struct Source {
  std::string name;
  std::vector<std::string> levels;  // empty: a column of numbers
  std::vector<double> mean, sd;     // of the numbers it becomes, over the rows that were fitted
  Missing missing = Missing::kError;
  bool indicator = false;              // its last number says whether the value is missing
  DateOrder dates = DateOrder::kNone;  // its number is that of days, written as dates
  std::size_t own_width() const { return levels.empty() ? 1 : levels.size() - 1; }
  std::size_t width() const { return own_width() + (indicator ? 1 : 0); }
};

struct Encoding {
  std::vector<Source> sources;
  Missing missing = Missing::kError;
  std::string agent_column;           // empty: one file per agent
  std::string target;                 // empty where there are outcomes
  std::vector<std::string> classes;   // empty: regression
  std::vector<std::string> outcomes;  // columns that every agent weighs in its own way
  ReadOptions reading = {};           // how text tables are read, new ones too
  bool values = false;                // predictions are values of states, which no column holds
  // Gaussian with classes: least squares on one indicator per class.
  Family family = Family::kGaussian;
  std::string row_weight, trials;  // columns; empty: none
  std::string offset;              // likewise; of several classes a list, one column for each
  OffsetScale offset_scale = OffsetScale::kLink;
  std::vector<std::string> common;  // columns without a random effect
  // The column of a second factor with a random intercept, within which agents lie or which they
  // cross; empty: none.
  std::string within, crossed;
  bool leveled() const { return !within.empty() || !crossed.empty(); }
  const std::string& level_column() const { return within.empty() ? crossed : within; }

  std::size_t dim() const;                 // 1 (the intercept) and all widths
  std::vector<std::string> names() const;  // of the coefficients: intercept, age, colour=red
  // The model is a generalised linear mixed model, not the linear one with its closed forms.
  bool generalised() const {
    return !leveled() && (family != Family::kGaussian || !common.empty());
  }
  std::vector<std::string> offsets() const;  // the columns in `offset`
  // The target is a number with additive errors: it is standardised, and losses are squared errors.
  bool numeric() const {
    return classes.empty() && (family == Family::kGaussian || family == Family::kT);
  }
  bool is_common(std::size_t coefficient) const;  // 0: the intercept
  const char* task() const {
    return values ? "td" : classes.empty() ? "regression" : "classification";
  }
  // What is predicted, by name.
  std::string predicted() const;
  // Two classes need one channel (1: the second), more need one each.
  std::size_t channels() const {
    if (!outcomes.empty()) return outcomes.size();
    if (family == Family::kMultinomial) return classes.size();
    if (generalised()) return 1;
    return classes.size() <= 2 ? 1 : classes.size();
  }
};

struct FrameOptions {
  std::vector<std::string> paths;          // files, folders, patterns
  std::vector<std::string> beside = {};    // files with more columns of the same rows
  std::string target, agent;               // agent empty: looked for
  std::vector<std::string> channels = {};  // instead of a target: columns of numbers, each one,
  std::string weights = {};                // and a file with every agent's weights of them
  std::vector<std::string> features = {}, exclude = {};
  MissingRule missing = {};
  Task task = Task::kAuto;
  std::string family = "gaussian";  // or another, or auto: binomial for two classes
  std::string row_weight = {}, trials = {}, offset = {};
  OffsetScale offset_scale = OffsetScale::kLink;
  std::vector<std::string> common = {};
  std::string within = {}, crossed = {};  // the column of a second factor
  std::uint64_t seed = 1;
  ReadOptions reading = {};
  std::vector<std::string> categorical = {},
                           numeric = {};  // columns that are so, whatever they hold
  std::size_t levels = 20;                // most of a text column that is a feature
  std::size_t level_rows = 1;  // fewer rows make a level "other"; a site names no such level
  // Of a site in a federation: its name, and the agent of all its rows where no column names agents.
  std::string site = {};
  // Columns that are no features: rows come in the order of `time`, and lie in the folds that
  // `folds` names.
  std::string time = {}, folds = {};
  std::vector<std::string> test = {};  // files whose rows are scored, and learnt from by no model
  // Columns, levels and scales are those of a centre (table/known.h).
  std::shared_ptr<const KnownColumns> known = {};
};

// What a person says about reading and columns, described once for the command line and Python.
struct TableChoices {
  std::string missing = "error", categorical = {}, numeric = {};
  std::int64_t levels = 20, level_rows = 1;
  ReadOptions reading = {};
  static const Params<TableChoices>& params();
  void put(FrameOptions& options) const;
  static TableChoices of(const FrameOptions& options);  // which put() would make
};

bool is_outcome(const FrameOptions& options, const std::string& name);  // the target or a channel
// Whether models may use the column.
bool is_feature(const FrameOptions& options, const Encoding& encoding, const std::string& name);

// What is wrong with the columns of a table, all of it at once.
class Problems {
 public:
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }
  bool empty() const { return sentences_.empty(); }
  void refuse(Processes& processes) const;  // BadInput, on every process, where there are any

 private:
  std::vector<std::string> sentences_;
};

// A text among numbers is a slip, not a category, unless all such texts are codes such as 3+; over all
// processes, where the column is one of texts.
bool note_slip(const Tables& tables, const Column& column, std::size_t most_levels,
               Processes& processes, Problems& problems);

// Refuses what can be refused by the names of the columns, and finds the agent's.
Encoding begin_encoding(const std::vector<std::string>& files,
                        const std::vector<std::string>& header, const FrameOptions& options);

// The class of a text; numbers that are classes are the same however they are written.
std::optional<std::size_t> class_named(const Encoding& encoding, const std::string& text,
                                       char decimal);

// What has to be read.
TableOptions columns_needed(const std::vector<std::string>& header, const FrameOptions& options,
                            const Encoding& encoding);

// What is to be predicted, of every row of the tables.
struct Target {
  std::vector<std::string> names;                   // the target's, or the channels'
  std::vector<const std::vector<double>*> numbers;  // by name, of a regression
  std::vector<std::int32_t> classes;                // of a classification; -1: none
};

// Several processes may each have some of the rows; their columns have the same types and levels,
// and Column::missing counts the blanks of all. What they decide is decided by all rows.
//
// Rows that cannot be used are struck from `keep`, and a note says how many.
struct Marked {
  std::vector<char>& keep;
  std::vector<std::string>& notes;
  Problems& problems;
};
RowAgents encode_agents(const Tables& tables, const FrameOptions& options, Processes& processes,
                        const Encoding& encoding, Marked marked);
// Texts in row weights, trials and offsets, and their missing values: refused, or by the rule drop
// their rows are left out. No other value can stand for them. A row of weight 0 is left out too.
void check_row_columns(const Tables& tables, const FrameOptions& options, Processes& processes,
                       const Encoding& encoding, Marked marked);
Target encode_target(const Tables& tables, const FrameOptions& options, Processes& processes,
                     Encoding& encoding, Marked marked);
// The classes of a target that is not a number, and the family, once there are no problems.
void encode_classes(const Tables& tables, const FrameOptions& options, Processes& processes,
                    Encoding& encoding, Target& target, Marked marked);
std::vector<Column*> feature_columns(Tables& tables, const FrameOptions& options,
                                     Processes& processes, const Encoding& encoding, Marked marked);
void strike_blanks(const Tables& tables, const std::vector<Column*>& features,
                   const MissingRule& missing, Processes& processes, Marked marked);
// What the columns became, in a sentence.
std::string columns_note(const Encoding& encoding);

// Rows that come agent after agent: where each agent's begin, and at last where they end. Agents of
// other processes have none here.
struct AgentRows {
  std::vector<std::size_t> first;
  std::span<const double> weight = {};  // of rows; empty: all 1
  std::size_t agents() const { return first.size() - 1; }
  std::size_t count() const { return first.back(); }
};

// [d][order.size()]: a row of ones, then the columns, standardised, in the order of the rows given.
// Each column is let go as soon as it is copied.
std::vector<double> encode_features(const std::vector<Column*>& features,
                                    const std::vector<std::size_t>& order, const AgentRows& rows,
                                    const MissingRule& missing, Team& team, Encoding& encoding,
                                    std::vector<std::string>& notes);

struct Scale {
  double mean = 0, sd = 0;
  bool varies() const;
};

// Columns, one after another, to mean 0 and deviation 1 over all agents' rows, weighted where these
// have weights, NaN (a blank) to 0;
// one that does not vary is left alone.
std::vector<Scale> standardise(std::span<double> values, std::size_t columns, const AgentRows& rows,
                               Team& team);

bool by_number(const std::string& a, const std::string& b);  // numbers by value, texts by letters

}  // namespace affpcl
