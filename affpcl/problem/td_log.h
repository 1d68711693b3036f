// TD(0) on recorded transitions: the log of many agents as a CSV file, one row a transition
// (agent, state, next state, reward). States are names, each with a value of its own (phi is
// one-hot), or rows of numbers (phi are columns of the file as they are, not scaled).
//
// The truth is not known here; means are those of each agent's rows. Ratios are counted over the
// pairs (state, next state) that the file holds, or learnt with psi = (1, phi, gamma phi'). Every
// agent's rows are taken as its own policy's: there are no weights for a policy other than the one
// that acted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/problem/transitions.h"

namespace affpcl {

class TdLog final : public Transitions,
                    public KnownObjective,
                    public Means,
                    public RatioFeatures,
                    public Recorded {
 public:
  // An agent's rows one after the other and again; once, after which it is absent; at random.
  enum class Order { kFile, kOnce, kRandom };
  struct Config {
    std::string file = {};
    std::string agent = "agent", state = "state", next_state = "next_state", reward = "reward";
    std::string done = "done";  // the one column that need not be there
    std::string features = {},
                channels = {};  // lists of columns, "a,b"; features replace the states
    std::string weights = {};   // a file: agent and theta^i, one column per channel
    double gamma = 0.5;
    Order order = Order::kFile;
    bool drop_short = false;  // agents of fewer than kFewest rows: dropped, or refused
  };
  static constexpr std::int64_t kFewest = 2;
  static const Params<Config>& params();
  explicit TdLog(const Config& config);  // reads the file

  Shape shape() const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  Facets facets() const override;
  std::int64_t most_samples() const override;
  bool present(std::int64_t agent, std::int64_t sample) const override;
  std::int64_t count_present(std::int64_t sample) const override;
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;
  void psi(Lanes lanes, In s, Out features) const override;
  int cells() const override { return cells_; }
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;
  void mean_Phi(Lanes lanes, In theta, Out bhat) const override;
  void mean_coe(Lanes lanes, In theta, Out g) const override;
  double G_A() const override;
  double G_Phi() const override;
  std::vector<double> theta(std::int64_t agent) const override;

  const Config& config() const { return config_; }
  bool named_states() const { return config_.features.empty(); }
  const Names& names() const { return names_; }
  const std::vector<std::string>& state_names() const { return states_; }  // as unknowns
  // r + gamma phi''x - phi'x at an agent's t-th row.
  double error(std::int64_t agent, std::int64_t t, In x, int lane) const;
  std::int64_t rows(std::int64_t agent) const {
    const auto i = static_cast<std::size_t>(agent);
    return first_[i + 1] - first_[i];
  }

 private:
  ObjectiveForm form() const;

  static constexpr int kEnd = -1;  // the next state of a row that ends its episode

  void read(std::vector<std::int32_t>& owner);
  void name_states(const std::vector<std::string>& states);
  void sort_by_agent(const std::vector<std::int32_t>& owner);
  void weigh_rewards(const std::vector<std::string>& channels);

  std::size_t row(std::int64_t agent, std::int64_t t) const;   // its t-th in the file
  const double* c(std::size_t row) const;                      // k numbers; not where k is 0
  double here(std::size_t row, In x, int lane) const;          // phi' x
  double there(std::size_t row, In x, int lane) const;         // gamma phi'' x
  double expected(std::size_t row, In theta, int lane) const;  // c' theta
  void add_phi(std::size_t row, double factor, Out y, int lane) const;
  void write(std::size_t row, Out s, int lane) const;
  template <class F>
  void over_rows(Lanes lanes, Out out, F add) const;  // add(row, lane, 1 / rows)

  Config config_;
  int d_ = 0, k_ = 0, cells_ = 0;
  Names names_;
  std::vector<std::string> states_;
  std::vector<std::int64_t> first_;  // [agents + 1] into by_agent_
  std::vector<std::size_t> by_agent_;
  // One entry per row of the file.
  std::vector<int> state_, next_, cell_;  // named states
  std::vector<double> phi_, next_phi_;    // [rows][d], numbers
  std::vector<double> c_, r_;             // [rows][channels]
  std::vector<double> theta_;             // [agents][channels], where weights are given
  std::vector<double> theta_mean_;        // over agents
};

template <>
struct EnumNames<TdLog::Order> {
  static constexpr std::string_view all[] = {"file", "once", "random"};
};

}  // namespace affpcl
