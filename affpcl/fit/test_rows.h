// Test rows: they come from files of their own, are encoded as the rows that are learnt from, and no
// model learns from them.
#pragma once

#include <vector>

#include "affpcl/runtime/team.h"
#include "affpcl/table/frame.h"
#include "affpcl/table/model.h"

namespace affpcl {

class TestRows {
 public:
  // Reads the files `test` of the options on rank 0 and adds the rows of the frame's agents to it.
  // Without files nothing happens.
  TestRows(const FrameOptions& options, Team& team, Frame& frame);

  // Scores the rows of agents that the frame lacks, by the model of unseen agents. Only on rank 0.
  void score_unseen(FitResult& result) const;

 private:
  struct Row {
    std::vector<double> x, y, offsets;
    double weight = 1, trials = 1;
    int level = -1;
    std::size_t truth = 0;  // its class
  };
  class Reader;
  void add_to(Frame& frame, Team& team, const std::vector<double>& numbers);

  std::vector<Row> unseen_;
  std::size_t unseen_agents_ = 0;
};

}  // namespace affpcl
