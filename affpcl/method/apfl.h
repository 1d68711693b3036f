// APFL (Deng, Kamani, Mahdavi 2020): each agent mixes a model of its own with a common one,
//
//   x_i = a_i v_i + (1 - a_i) w_i
//   v_i -= alpha a_i g_i(x_i),    w_i -= alpha g_i(w_i),    w = mean_i w_i
//   adaptive: a_i -= alpha <v_i - w_i, g_i(x_i)>, kept in [0, 1]     (their eq. 10)
//
// with w_i the agent's copy of w between two sums. What is scored is x_i with w from after the sum.
// As a sum: the displacements of w_i, d numbers; v_i and a_i stay with the agent.
#pragma once

#include "affpcl/method/common_model.h"

namespace affpcl {

class Apfl final : public Method {
 public:
  struct Config {
    double mix = 0.5;      // a_i, or where it starts
    bool adaptive = true;  // a_i moves
  };
  explicit Apfl(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key&, Centre centre) const override {
    common_.start(problem, centre);
  }
  void start(const Problem& problem, Agents agents) const override;
  void contribute(const Block& block, Message message) const override {
    common_.contribute(block, message);
  }
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }
  In central_x(Centre centre) const override { return common_.w(centre); }
  std::vector<Tally> tallies() const override { return {Tally::kSum, Tally::kSum}; }
  void report(Agents agents, Out rows) const override;
  std::vector<std::string> columns() const override { return {"mix"}; }
  void conclude(std::span<const double> tallies, std::span<double> columns) const override;

 private:
  void mix(Agents agents, In w) const;  // x = w + a (v - w)
  void move(const Block& block, int k, In w, In g) const;

  Config config_;
  CommonModel common_;
  Field v_, x_, mix_;  // per agent
  Field before_;       // centre: w from before the round's sum
};

}  // namespace affpcl
