// A method of personalised federated learning is three functions:
//
//   contribute   per block of agents: what each agent adds to the round's sum
//   centre       once: moves what all agents share, given the mean of the sum
//   update       per block, after centre: each agent's step
//
// It declares its memory by name and width; the runtime owns it. What update needs of the centre
// from before the round has to be kept in that memory. A method does not sum over agents and does
// not depend on what runs it: one thread, many threads or ranks, or one machine per agent.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/math/blocks.h"
#include "affpcl/math/message.h"
#include "affpcl/problem/round.h"

namespace affpcl {

struct Setup {
  const Problem& problem;
  const StepSizes& step;
  int period;  // local steps between two sums (K); a round may be shorter at the end of a run
  int batch;   // samples per local step
  int last;    // samples of a period's last step, at most `batch`
  std::int64_t steps = 0;  // local steps of the whole run
  bool averaged = false;   // an average of the solutions is scored, not the last one
  bool partial = false;    // agents are absent from some rounds
};

// How a number that every agent ends a run with combines over replicates.
enum class Tally { kSum, kLargest };

struct Traffic {  // numbers per agent and round
  std::int64_t up = 0, down = 0;
};

class Method {
 public:
  virtual ~Method() = default;

  virtual void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) = 0;
  // All memory is zero; a method that starts elsewhere says so here.
  virtual void start(const Problem& problem, const Key& key, Centre centre) const {
    (void)problem, (void)key, (void)centre;
  }
  virtual void start(const Problem& problem, Agents agents) const { (void)problem, (void)agents; }

  virtual void contribute(const Block& block, Message message) const { (void)block, (void)message; }
  virtual void centre(const Round& round, Mean mean, Centre centre) const {
    (void)round, (void)mean, (void)centre;
  }
  virtual void update(const Block& block, Mean mean) const = 0;

  // True: an agent that is absent from a round (Block::present) keeps all its memory as it is, and
  // what contribute and update write for it is taken back. False: what update writes stays.
  virtual bool rests() const { return true; }

  // What is scored, and what acts. Width 1 where all agents share it.
  virtual In solution(Agents agents, Centre centre) const = 0;
  // x^c and theta^c where the method has them, for errors and traces.
  virtual In central_x(Centre centre) const { return (void)centre, In{}; }
  virtual In central_theta(Centre centre) const { return (void)centre, In{}; }

  // What the method reports of each agent beside its solution. report gives one row per tally;
  // conclude makes of an agent's tallies, combined over replicates, what the result shows
  // (columns). Only report may use what declare set up.
  virtual std::vector<Tally> tallies() const { return {}; }
  virtual void report(Agents agents, Out rows) const { (void)agents, (void)rows; }
  virtual std::vector<std::string> columns() const { return {}; }
  virtual void conclude(std::span<const double> tallies, std::span<double> columns) const {
    (void)tallies, (void)columns;
  }
  // Names of parts of the sum that the method divides by or solves with: they are never compressed.
  virtual std::vector<std::string_view> uncompressed() const { return {}; }
  // What the method sends as its authors wrote it, where that is not the sum; up = 0: the sum.
  virtual Traffic published_traffic() const { return {}; }
};

// An entry of the catalogue.
struct MethodKind {
  std::string_view name, doc;
  std::vector<Param> params;
  std::function<std::unique_ptr<Method>(const Values&)> make;
};

// The entry of a method with M::Config, M::params() and a constructor M(Config), or without any.
template <class M>
MethodKind method_kind_of(std::string_view name, std::string_view doc) {
  if constexpr (requires { typename M::Config; })
    return {name, doc, M::params().table(),
            [](const Values& v) { return std::make_unique<M>(M::params().read(v)); }};
  else
    return {name, doc, {}, [](const Values&) { return std::make_unique<M>(); }};
}

// All methods, in the order `affpcl list` shows them.
const std::vector<MethodKind>& method_kinds();
// BadInput if there is none, with a suggestion.
const MethodKind& method_kind(std::string_view name);
// Adds a method to the catalogue, in place of one of the same name.
void add_method_kind(MethodKind kind);

}  // namespace affpcl
