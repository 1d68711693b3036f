// From the user's tables to numbers: which columns, how texts become numbers, what is done about
// blanks, whose rows are whose. What predictions need of it later is the Encoding; the rest is the
// rows themselves, standardised, agent after agent, fold after fold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/data/table.h"
#include "affpcl/fit/moments.h"
#include "affpcl/runtime/team.h"

namespace affpcl {

inline constexpr std::size_t kMostLevels = 20;    // of a text column that is a feature
inline constexpr std::size_t kMostClasses = 100;  // of a target
inline constexpr int kFolds = 5;

enum class Missing { kError, kMean, kDrop };
enum class Task { kAuto, kRegress, kClassify };

// A column of the table that models use: one number, or one 0/1 number for every level but the
// first.
struct Source {
  std::string name;
  std::vector<std::string> levels;  // empty: a column of numbers
  std::vector<double> mean, sd;     // of the numbers it becomes, over the rows that were fitted
  std::size_t width() const { return levels.empty() ? 1 : levels.size() - 1; }
};

struct Encoding {
  std::vector<Source> sources;
  Missing missing = Missing::kError;
  std::string agent_column;  // empty: one file per agent
  std::string target;
  std::vector<std::string> classes;  // empty: regression

  std::size_t dim() const;                 // 1 (the intercept) and all widths
  std::vector<std::string> names() const;  // of the coefficients: intercept, age, colour=red
  // Two classes need one channel (1: the second), more need one each.
  std::size_t channels() const { return classes.size() <= 2 ? 1 : classes.size(); }
};

struct FrameOptions {
  std::vector<std::string> paths;  // files, folders, patterns
  std::string target, agent;       // agent empty: looked for
  std::vector<std::string> features = {}, exclude = {};
  Missing missing = Missing::kError;
  Task task = Task::kAuto;
  std::uint64_t seed = 1;
};

struct Frame {
  Encoding encoding;
  std::vector<std::string> files, agents;
  std::vector<std::string> notes;  // what was done that one should know, a sentence each
  std::size_t rows = 0, d = 0, channels = 1;
  // Rows [begin(i, f), begin(i, f + 1)) are fold f of agent i.
  std::vector<std::size_t> starts;
  std::size_t begin(std::size_t agent, int fold) const {
    return starts[agent * kFolds + static_cast<std::size_t>(fold)];
  }
  std::size_t agent_rows(std::size_t agent) const { return begin(agent + 1, 0) - begin(agent, 0); }
  std::vector<double> X;              // [d][rows], standardised, X[0][.] = 1
  std::vector<double> Y;              // [channels][rows], centred and scaled
  std::vector<double> y_mean, y_sd;   // by channel
  std::vector<std::int32_t> classes;  // by row, of a classification

  // X'X and so on of one channel, without one fold (-1: all rows).
  Moments moments(std::size_t channel, int without, Team& team) const;
};

Frame build_frame(const FrameOptions& options);

// The files that `paths` stand for, in order: a folder its *.csv, a pattern what it matches.
std::vector<std::string> data_files(const std::vector<std::string>& paths);

// How the agent of a one-file table is found: `wanted`, or a column called agent, or site.
std::string agent_column(const std::string& path, const std::vector<std::string>& header,
                         const std::string& wanted);

std::string file_agent(const std::string& path);  // the file's name without folder and ending

}  // namespace affpcl
