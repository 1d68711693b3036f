// The round loop: one replicate of one setting, all its methods side by side on the same samples.
//
// Methods with the same period and batch share one world and one batch, drawn once, so their
// differences are paired. Where several processes share the agents, each holds the blocks of its
// own, and all of them call the same functions in the same order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "affpcl/base/archive.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/problem.h"
#include "affpcl/problem/some_agents.h"
#include "affpcl/runtime/compression.h"
#include "affpcl/runtime/round_sum.h"
#include "affpcl/runtime/run_options.h"
#include "affpcl/runtime/team.h"

namespace affpcl {

struct RunMethod {
  std::string name;
  std::unique_ptr<Method> method;
  int period = 1;
  int batch = 1;
  StepSizes step;
  int last = 0;  // samples of a period's last step, where these are fewer
  Compression compress = {};
  Sums sum = Sums::kFloat;  // where processes are apart: kFixed
};

// What one method did in one replicate.
struct Record {
  std::vector<double> steps;                // when the curve was recorded
  std::vector<double> curve;                // mean squared error over agents
  std::vector<std::vector<double>> agents;  // of each curve agent
  double mse = 0;                           // mean over agents and the tail
  std::vector<double> agent_mse;            // mean over the tail, per agent
  double central_x = 0,
         central_theta = 0;       // mean squared error over the tail; NaN where there is none
  std::int64_t diverged_at = -1;  // the step at which the run was given up; -1: never
  std::int64_t sent = 0;          // numbers per agent and round that enter the sum
  // What they are sent as, each way, in numbers of 64 bits (runtime/compression.h).
  double up = 0, down = 0;
  double present = 1;            // the share of its rounds that an agent takes part in, on average
  Traffic published = {};        // as the method's authors send them; 0: the same
  std::vector<double> more;      // the problem's other measures of error, mean over agents and tail
  std::vector<double> solution;  // [agents][d], where agents have names
  std::vector<std::vector<double>> tallies;  // what the method reports, by tally and agent
  double seconds = 0;
};

// Everything that a run needs to go on from where it is.
struct RunState {
  struct Field {
    std::string name;
    std::vector<double> numbers;
  };
  std::int64_t step = 0;
  std::vector<Field> fields;
};
void fields(Archive& archive, RunState& state);

// The steps at which the curve of a method has a point, once all rounds that begin before `until`
// are done.
std::vector<double> curve_steps(const RunOptions& options, int period, std::int64_t until);

class Run {
 public:
  Run(const Problem& problem, std::vector<RunMethod> methods, RunOptions options, Team& team);

  // Goes on until `until` steps are done (or the end), or stop turns true; ends at a round's end.
  // after_step is called after every step: that is how to follow a run, for pieces are slower.
  void advance(std::int64_t until, const std::atomic<bool>* stop = nullptr,
               const std::function<void()>& after_step = {});
  std::int64_t step() const { return step_; }
  bool done() const { return step_ >= options_.steps; }

  // Fills in the averages of what has been done so far; what is by agent, in the first process
  // only.
  const std::vector<Record>& finish();

  // The state of all ranks. It is whole on rank 0, and load() needs it there only; BadInput, on all
  // ranks, where it does not fit this run.
  RunState save();
  void load(const RunState& state);

  // Called after every round of every method: (method, step), and once before the first with step
  // 0.
  void watch(std::function<void(std::size_t, std::int64_t)> watcher);
  // Of agents that this process holds.
  In solution(std::size_t method, std::int64_t block) const;
  double solution(std::size_t method, std::int64_t agent, int row) const;
  int dimension() const { return shape_.d; }
  std::int64_t first_block() const { return first_block_; }  // that this process holds
  std::int64_t last_block() const { return last_block_; }    // the one after them
  In central_x(std::size_t method) const;
  In central_theta(std::size_t method) const;

 private:
  // Running numbers of a member: sums over the tail, the averaged iterate's weight so far, when it
  // diverged (0: never).
  enum Progress {
    kTailCount,
    kTailSum,
    kTailX,
    kTailTheta,
    kWeight,
    kDivergedAt,
    kSeconds,
    kProgress
  };
  struct Member {
    RunMethod plan;
    Layout agent, centre;
    SumLayout sum;
    Compressor compressor;
    Field unsent;  // of an agent, where there is error feedback
    Store agents, averaged, error, tail, more;
    Buffer shared, mean;
    RoundSum total, error_total;  // the round's sum and then the errors; the errors alone
    bool ahead = false;           // the next round's sum is made already
    Record record;
    std::array<double, kProgress> progress{};
  };
  struct Group {  // members with one world
    int period, batch, last;
    std::vector<std::size_t> members;
    Layout world, sample;
    Store worlds, samples;
    std::array<Present, 2> present = {};  // in this round and the next, where these are not all
    bool shared() const { return members.size() > 1; }  // the samples, by several methods
    // Then the next round's are drawn before this one's have served all.
    bool two() const { return shared() && period == 1; }
    int samples_of_a_round() const { return period * batch; }
  };

  // Of one block, at = the step its round begins with: its samples, what it adds to the round's
  // sum, its step, the average of its iterates, and its errors.
  void draw(const Group& group, std::int64_t at, int steps, std::int64_t block) const;
  void contribute(const Group& group, const Member& member, std::int64_t at, int steps,
                  std::int64_t block, int worker, const RoundSum::Part& to);
  void contribute_apart(const Group& group, const Member& member, const Block& block, LaneSet here,
                        const RoundSum::Part& to) const;
  void update(const Group& group, const Member& member, int steps, std::int64_t block, int worker);
  void average(const Member& member, double share, std::int64_t block) const;
  void score(const Member& member, std::int64_t at, std::int64_t block, int worker,
             const RoundSum::Part& to);

  bool looks_at(std::int64_t at, int steps) const;
  void draw_all(const Group& group, std::int64_t at, int steps);
  void round(Group& group, Member& member, int steps, bool goes_on);
  void give_up(Member& member);
  double newest_share(Member& member, std::int64_t at) const;  // in the average of the iterates
  std::int64_t count_recorded(std::int64_t sample) const;      // agents that have it
  bool partial() const { return options_.participation < 1 || !options_.schedule.empty(); }
  void refuse_schedule() const;
  // Settles which agents take part in the round that begins at `at`; they stay known for two
  // rounds.
  void attend(Group& group, std::int64_t at, int steps) const;
  void take_part(Present& present, std::int64_t round) const;
  double share_present(int period) const;  // of the agents of all rounds so far
  const Present* present(const Group& group, std::int64_t at) const;  // nullptr: all
  LaneSet present(const Group& group, std::int64_t at, std::int64_t block) const;
  LaneSet own(Lanes lanes) const {
    return some_ != nullptr ? some_->of(lanes) : all_lanes(lanes.count);
  }
  void settle_own();
  void set_scale();
  Round context(const Group& group, const Member& member, std::int64_t at, int steps, int worker,
                int agents);
  // The sum of all errors, then those of the curve agents.
  void record(Member& member, std::int64_t now, const double* errors);
  Batch batch_of(const Group& group, std::int64_t block, std::int64_t at, int steps) const;
  Centre centre_of(const Member& member) const { return {member.shared.data()}; }
  In scored(const Member& member, std::int64_t block) const;  // the last or the averaged iterate
  // Calls f for the blocks of a leaf.
  template <class F>
  void blocks(std::int64_t leaf, F f) const;
  Store store(int rows) const;  // for the blocks of this process
  // rows numbers of every agent, agent by agent, in the first process; write(block, rows) gives
  // them.
  template <class F>
  std::vector<double> by_agent(int rows, F write);
  template <class Visitor>
  void visit(Visitor& visitor);
  void check(const RunState& state);

  const Problem& problem_;
  Facets facets_;
  RunOptions options_;
  Team& team_;
  Shape shape_;
  std::int64_t leaves_ = 0, every_ = 1;            // rounds between two points of a curve
  const SomeAgents* some_ = nullptr;               // where this process is a site of a federation
  Leaves own_leaves_;                              // of this process
  std::int64_t first_block_ = 0, last_block_ = 0;  // of this process
  int more_ = 0;                                   // other measures of error
  std::int64_t step_ = 0;
  double scale_ = 1;
  std::vector<Member> members_;
  std::vector<Group> groups_;
  std::vector<Record> records_;
  std::function<void(std::size_t, std::int64_t)> watcher_;
};

}  // namespace affpcl
