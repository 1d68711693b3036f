// The rows of the user's tables as a solver wants them: numbers, standardised, agent after agent,
// fold after fold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/data/tables.h"
#include "affpcl/math/dense.h"
#include "affpcl/runtime/team.h"
#include "affpcl/table/encode.h"
#include "affpcl/table/held_out.h"
#include "affpcl/table/moments.h"

namespace affpcl {

// How an agent's rows lie: in folds, or as they came, all in the first fold. The solver decides
// (fit.cc): a stream takes them as they came.
enum class RowOrder { kInFolds, kAsTheyCame };

struct Frame {
  Encoding encoding;
  bool joined = false;              // its columns and scales are those of a centre,
  std::vector<double> within = {};  // whose agents' rows have this covariance within agents
  std::vector<std::string> files, agents;
  std::vector<std::string> notes;  // what was done that one should know, a sentence each
  // Several processes may share the rows: each has those of its own agents (table/agent_sum.h), and
  // everything else is the same for all. all_rows are those that are learnt from, of all processes.
  std::size_t rows = 0, all_rows = 0;
  std::size_t d = 0, channels = 1;
  HeldOut held_out;
  int folds() const { return held_out.folds; }
  // Rows [begin(i, f), begin(i, f + 1)) are fold f of agent i.
  std::vector<std::size_t> starts;
  std::size_t begin(std::size_t agent, int fold) const {
    return starts[agent * static_cast<std::size_t>(folds()) + static_cast<std::size_t>(fold)];
  }
  struct Run {
    std::size_t from, to;
  };
  // The rows of an agent that are learnt from where fold `without` is held out.
  std::array<Run, 2> training(std::size_t agent, int without) const;
  // Test rows, of which no model learns, lie after those of all agents: of agent i those from
  // tests[i] to tests[i + 1]. Empty: there are none.
  std::vector<std::size_t> tests;
  Run test_rows(std::size_t agent) const {
    return tests.empty() ? Run{rows, rows} : Run{tests[agent], tests[agent + 1]};
  }
  std::size_t agent_rows(std::size_t agent) const { return begin(agent + 1, 0) - begin(agent, 0); }
  std::vector<std::uint32_t> places;  // of each row among its agent's, as they came
  std::vector<double> X;              // [d][rows], standardised, X[0][.] = 1
  std::vector<double> Y;              // [channels][rows], centred and scaled
  std::vector<double> y_mean, y_sd;   // by channel
  std::vector<std::int32_t> classes;  // by row, of a classification
  // By row, where the table has them. Of a generalised model Y is [1][rows] as it is (a class by its
  // place), and centred and scaled only where the target is numeric. A row of weight w counts as w
  // rows.
  std::vector<double> row_weight, trials;
  double weight(std::size_t row) const { return row_weight.empty() ? 1 : row_weight[row]; }
  std::vector<double> offset;      // [predictors][rows], of a target that is not numeric
  std::vector<double> subtracted;  // of a numeric target: the offset, which Y lacks
  // Of a second factor: its levels by name, and that of each row.
  std::vector<std::string> levels;
  std::vector<std::int32_t> level;
  std::vector<double> theta;  // [agents][channels]: their weights, where these are outcomes

  double y(std::size_t channel, std::size_t row) const {  // in units of the target
    return y_mean[channel] + y_sd[channel] * Y[channel * rows + row];
  }
  // Of all channels where they are outcomes, else of the first: what an agent wants to know.
  double wanted(std::size_t agent, std::size_t row) const;

  // Deals every agent's rows into folds anew: at random, but every class in every fold if it can
  // be. The folds of an agent depend on seed, repeat, its name and the places of its rows alone.
  void deal(std::uint64_t seed, std::uint32_t repeat);
  // Groups of agents of about one size, of this process's agents: by rank of a hash of the agents'
  // names, so that they do not depend on who has which agents.
  std::vector<std::size_t> in_groups(std::size_t groups, Team& team) const;
  // Puts every agent's rows into these folds: of(agent, at) has the fold of each place, whose row is
  // at[place].
  void put_in_folds(
      FunctionRef<std::vector<std::size_t>(std::size_t, const std::vector<std::size_t>&)> of);

  // [d][count]: X of some rows, close together in memory.
  Matrix block(std::size_t from, std::size_t count) const;
  // X'X and so on of one channel, of the rows that are learnt from without this fold.
  Moments moments(std::size_t channel, int without, Team& team) const;

 private:
  // Rows from `from` on and their targets, each times the root of its weight; the sum of weights.
  double weigh(std::size_t from, Matrix& x, Vector& y) const;
};

// An offset of a row on the scale of the linear predictor.
double linked(const Encoding& encoding, double offset);
// The same of every linear predictor, from the row's offsets: one, or one for each class, whose
// coordinates are in class_basis().
std::vector<double> predictor_offsets(const Encoding& encoding, std::span<const double> offsets);

Frame build_frame(const FrameOptions& options);
Frame build_frame(const FrameOptions& options, Team& team, RowOrder order = RowOrder::kInFolds);
// Of tables that are at hand, such as a program's arrays; the encoding says which column is what.
Frame build_frame(Tables tables, Encoding encoding, const FrameOptions& options);
Frame build_frame(Tables tables, Encoding encoding, const FrameOptions& options, Team& team,
                  RowOrder order = RowOrder::kInFolds);

}  // namespace affpcl
