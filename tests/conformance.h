// What every method and every problem must satisfy, whoever wrote it and whoever runs it. Point
// these at your own:
//
//   TEST(MyMethod, Conforms) {
//     for (const ProblemKind& problem : problem_kinds())
//       conformance::check_method(MyMethod::kind(), problem);
//   }
//   TEST(MyProblem, Conforms) { conformance::check_problem(MyProblem::kind()); }
//
// With an option of the method: check_method(kind, problem, 150, {{"ratio", "none"}}).
// Equal means equal to the bit, except where the order of a sum changes. All seeds are fixed.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/base/params.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/runtime/run.h"
#include "tests/ranks.h"

namespace affpcl::conformance {

using Given = std::map<std::string, Value>;

// ---- making things ----

// A table for problems that read one: three features, two outcomes, 4 to 8 rows an agent.
class TableFile {
 public:
  explicit TableFile(std::int64_t agents) {
    std::ofstream out(path);
    out << "agent,x0,x1,x2,c1,c2\n";
    for (std::int64_t i = 0; i < agents; ++i)
      for (std::uint32_t r = 0; r < 4 + i % 5; ++r) {
        out << 'a' << i;
        for (std::uint32_t j = 0; j < 5; ++j)
          out << ',' << normal({.seed = 3, .replicate = 0, .step = r}, i, Purpose::kSample, j);
        out << '\n';
      }
  }
  ~TableFile() { std::remove(path.c_str()); }
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  const std::string path =
      ::testing::TempDir() + "affpcl_conformance_" + std::to_string(getpid()) + ".csv";
};

inline std::unique_ptr<Problem> make_problem(const ProblemKind& kind, std::int64_t agents,
                                             Given given = {}) {
  std::optional<TableFile> table;  // needed until the problem is made
  for (const Param& p : kind.params) {
    if (p.name == "agents") given.emplace("agents", agents);
    if (p.name == "fold") {  // rows of a file
      table.emplace(agents);
      given.insert({{"file", table->path},
                    {"channels", std::string("c1,c2")},
                    {"delta_obj", 0.5},
                    {"ridge", 0.1}});
    }
    if (p.name == "actions")  // a small decision process: ratios have a cell per (o, a, o')
      given.insert(
          {{"states", std::int64_t{4}}, {"actions", std::int64_t{3}}, {"dim", std::int64_t{5}}});
  }
  return kind.make(Values(kind.params, given, kind.name), 7, 0);
}

// A constant step well inside the stable range, where its bounds are known.
inline double stable_step(const Problem& problem) {
  const Means* means = problem.means();
  const bool weighs = problem.shape().k > 0;
  if (means == nullptr || means->G_A() == 0 || (weighs && means->G_Phi() == 0)) return 0.01;
  const Monotonicity m = monotonicity(problem);
  double lambda = std::min(m.central, *std::min_element(m.agents.begin(), m.agents.end()));
  double G = means->G_A();
  if (weighs) lambda = std::min(lambda, m.objective), G = std::max(G, means->G_Phi());
  return 0.05 * lambda / (G * G);
}

inline StepSizes constant_step(double alpha) {
  StepSizes step;
  for (StepSizes::Module* m : {&step.agent, &step.central, &step.objective, &step.ratio})
    m->schedule = {.kind = Schedule::Kind::kConstant, .value = alpha};
  return step;
}

inline RunMethod make_method(const MethodKind& kind, const StepSizes& step, int period = 1,
                             int batch = 1, const Given& given = {}) {
  RunMethod m;
  m.name = kind.name;
  m.method = kind.make(Values(kind.params, given, kind.name));
  m.period = period;
  m.batch = batch;
  m.step = step;
  return m;
}

inline std::vector<RunMethod> one_method(const MethodKind& kind, const StepSizes& step,
                                         int period = 1, int batch = 1, const Given& given = {}) {
  std::vector<RunMethod> methods;
  methods.push_back(make_method(kind, step, period, batch, given));
  return methods;
}

// ---- looking at things ----

// Everything one method of a run shows: iterates of all agents, the centre, and its record, except
// how long it took. Complete in the first process.
inline std::vector<double> picture(Run& run, const Problem& problem, Team& team,
                                   std::size_t method = 0) {
  std::vector<double> own, all;
  const Leaves leaves = team.own(leaves_of(problem.shape().agents));
  for (std::int64_t i = leaves.first * kLeaf;
       i < std::min(leaves.last * kLeaf, problem.shape().agents); ++i)
    for (int r = 0; r < run.dimension(); ++r) own.push_back(run.solution(method, i, r));
  gather(team.processes(), own, [&](std::span<const double> numbers) {
    all.insert(all.end(), numbers.begin(), numbers.end());
  });
  for (const In& centre : {run.central_x(method), run.central_theta(method)})
    all.insert(all.end(), centre.p, centre.p + centre.rows);
  const Record record = run.finish()[method];
  const auto add = [&](const std::vector<double>& v) { all.insert(all.end(), v.begin(), v.end()); };
  add(record.steps);
  add(record.curve);
  for (const std::vector<double>& curve : record.agents) add(curve);
  add(record.agent_mse);
  add({record.mse, record.central_x, record.central_theta, static_cast<double>(record.diverged_at),
       static_cast<double>(record.sent)});
  return all;
}

inline std::vector<double> picture(Run& run, const Problem& problem, std::size_t method = 0) {
  const std::unique_ptr<Team> alone = serial_team();
  return picture(run, problem, *alone, method);
}

inline ::testing::AssertionResult same_bits(const std::vector<double>& a,
                                            const std::vector<double>& b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << a.size() << " numbers against " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<std::uint64_t>(a[i]) != std::bit_cast<std::uint64_t>(b[i]) &&
        !(std::isnan(a[i]) && std::isnan(b[i])))
      return ::testing::AssertionFailure() << "number " << i << " of " << a.size() << ": " << a[i]
                                           << " against " << b[i] << ", apart by " << a[i] - b[i];
  return ::testing::AssertionSuccess();
}

// ---- methods ----

struct Setting {
  int period = 1, batch = 1;
  bool own_steps = false;  // every agent has its own step size
  double participation = 1;
  Compression compress = {};
};

inline const std::vector<Setting>& settings() {
  static const std::vector<Setting> kSettings = {
      {1, 1},
      {1, 2},
      {3, 1},
      {3, 2},
      {1, 1, true},
      {3, 2, true},
      {1, 1, false, 0.3},
      {3, 2, false, 0.3, {Compression::Kind::kTopK, 0.3}},
      {1, 1, false, 1, {Compression::Kind::kQuantise}}};
  return kSettings;
}

// A method on a problem: what the checks below run again and again.
class Trial {
 public:
  Trial(const MethodKind& method, const Problem& problem, const Setting& setting, Given given = {})
      : method_(method), problem_(problem), setting_(setting), given_(std::move(given)) {
    step_ = constant_step(stable_step(problem));
    if (setting.own_steps)
      for (std::int64_t i = 0; i < problem.shape().agents; ++i)
        step_.agent_factors.push_back(0.5 + 0.5 * std::abs(std::sin(static_cast<double>(i))));
  }

  static constexpr std::int64_t kSteps = 11;  // of period 3 the last round is cut short
  RunOptions options() const {
    RunOptions o;
    o.seed = 3;
    o.replicate = 1;
    o.steps = kSteps;
    o.tail = 4;
    o.participation = setting_.participation;
    o.curve_agents = {0, problem_.shape().agents - 1};
    return o;
  }
  std::unique_ptr<Run> start(Team& team) const {
    std::vector<RunMethod> methods =
        one_method(method_, step_, setting_.period, setting_.batch, given_);
    methods[0].compress = setting_.compress;
    return std::make_unique<Run>(problem_, std::move(methods), options(), team);
  }
  // Some of a method's options go only with some settings; the defaults go with all, but where they
  // ask for means or true solutions that the problem does not have.
  bool refused() const {
    const std::unique_ptr<Team> team = serial_team();
    try {
      start(*team);
    } catch (const BadInput&) {
      return !given_.empty() || problem_.means() == nullptr || problem_.truth() == nullptr;
    }
    return false;
  }
  std::vector<double> whole(Team& team) const {
    const std::unique_ptr<Run> run = start(team);
    run->advance(kSteps);
    return picture(*run, problem_);
  }
  const Problem& problem() const { return problem_; }
  const MethodKind& method() const { return method_; }
  const Setting& setting() const { return setting_; }
  const StepSizes& step() const { return step_; }
  const Given& given() const { return given_; }

 private:
  const MethodKind& method_;
  const Problem& problem_;
  Setting setting_;
  Given given_;
  StepSizes step_;
};

// It runs to the end, shows finite numbers, and records each round's end.
inline void gives_finite_results(const Trial& t) {
  const std::unique_ptr<Team> team = serial_team();
  const std::unique_ptr<Run> run = t.start(*team);
  run->advance(Trial::kSteps);
  EXPECT_TRUE(run->done());
  const Shape shape = t.problem().shape();
  for (std::int64_t i = 0; i < shape.agents; ++i)
    for (int r = 0; r < shape.d; ++r) ASSERT_TRUE(std::isfinite(run->solution(0, i, r))) << i;
  for (const In& centre : {run->central_x(0), run->central_theta(0)})
    for (int r = 0; r < centre.rows; ++r) ASSERT_TRUE(std::isfinite(centre.p[r]));
  if (t.problem().truth() == nullptr) return;
  const Record record = run->finish().front();
  EXPECT_EQ(record.diverged_at, -1);
  EXPECT_TRUE(std::isfinite(record.mse));
  std::vector<double> ends;
  for (std::int64_t at = t.setting().period; at < Trial::kSteps; at += t.setting().period)
    ends.push_back(static_cast<double>(at));
  ends.push_back(static_cast<double>(Trial::kSteps));
  EXPECT_EQ(record.steps, ends);
  EXPECT_EQ(record.curve.size(), ends.size());
}

inline void is_the_same_on_any_team(const Trial& t) {
  const std::unique_ptr<Team> serial = serial_team();
  const std::vector<double> want = t.whole(*serial);
  for (int threads : {2, 3}) {
    const std::unique_ptr<Team> team = thread_team(threads);
    EXPECT_TRUE(same_bits(t.whole(*team), want)) << threads << " threads";
  }
}

// Ranks, some of them with threads and some without agents; saved on one number, loaded on another.
inline void is_the_same_on_any_ranks(const Trial& t) {
  const std::unique_ptr<Team> serial = serial_team();
  const std::vector<double> want = t.whole(*serial);
  for (const auto& [ranks, threads] : {std::pair{2, 1}, {3, 2}, {8, 1}}) {
    RunState state;
    std::vector<double> through, resumed;
    Ranks::run(ranks, [&, threads = threads](Processes& processes) {
      const std::unique_ptr<Team> team = thread_team(threads, processes);
      const std::unique_ptr<Run> run = t.start(*team);
      run->advance(4);
      RunState saved = run->save();
      run->advance(Trial::kSteps);
      std::vector<double> seen = picture(*run, t.problem(), *team);
      if (processes.first()) state = std::move(saved), through = std::move(seen);
    });
    EXPECT_TRUE(same_bits(through, want)) << ranks << " ranks";
    Ranks::run(ranks == 8 ? 1 : ranks + 1, [&](Processes& processes) {
      const std::unique_ptr<Team> team = serial_team(processes);
      const std::unique_ptr<Run> run = t.start(*team);
      run->load(processes.first() ? state : RunState{});
      run->advance(Trial::kSteps);
      std::vector<double> seen = picture(*run, t.problem(), *team);
      if (processes.first()) resumed = std::move(seen);
    });
    EXPECT_TRUE(same_bits(resumed, want)) << "saved by " << ranks << " ranks";
  }
}

// Saved after any step and loaded into a fresh run, also one with another team, it goes on as if
// nothing had happened.
inline void survives_saving(const Trial& t) {
  const std::unique_ptr<Team> serial = serial_team(), threads = thread_team(2);
  const std::vector<double> want = t.whole(*serial);
  for (const std::int64_t at : {1, 4, 9}) {
    const std::unique_ptr<Run> first = t.start(*serial);
    first->advance(at);
    const RunState state = first->save();
    const std::unique_ptr<Run> second = t.start(at == 4 ? *threads : *serial);
    second->load(state);
    EXPECT_EQ(second->step(), at);
    second->advance(Trial::kSteps);
    EXPECT_TRUE(same_bits(picture(*second, t.problem()), want)) << "saved after step " << at;
  }
}

// All it remembers is in the memory it declared: taken back to an earlier state, the same object
// does the same again; and another object has learnt nothing from it.
inline void keeps_nothing_to_itself(const Trial& t) {
  const std::unique_ptr<Team> team = serial_team();
  const std::unique_ptr<Run> run = t.start(*team);
  const RunState start = run->save();
  run->advance(4);
  const RunState middle = run->save();
  run->advance(Trial::kSteps);
  const std::vector<double> want = picture(*run, t.problem());
  for (const RunState* state : {&middle, &start, &middle}) {
    run->load(*state);
    run->advance(Trial::kSteps);
    EXPECT_TRUE(same_bits(picture(*run, t.problem()), want)) << "from step " << state->step;
  }
  EXPECT_TRUE(same_bits(t.whole(*team), want)) << "a fresh run";
}

// Other methods in the same run, with the same or another period, change nothing.
inline void does_not_mind_company(const Trial& t) {
  const std::unique_ptr<Team> team = serial_team();
  const std::vector<double> want = t.whole(*team);
  std::vector<RunMethod> methods;
  const MethodKind& other = method_kind("independent");
  methods.push_back(make_method(other, t.step(), t.setting().period, t.setting().batch));
  methods.push_back(
      make_method(t.method(), t.step(), t.setting().period, t.setting().batch, t.given()));
  methods.back().compress = t.setting().compress;
  methods.push_back(make_method(other, t.step(), 2, 1));
  Run run(t.problem(), std::move(methods), t.options(), *team);
  run.advance(Trial::kSteps);
  EXPECT_TRUE(same_bits(picture(run, t.problem(), 1), want));
}

// The order of agents does not matter: in another order they end where they ended before, up to the
// rounding of sums.
inline void does_not_mind_the_order(const MethodKind& method, const Setting& setting) {
  const int n = 150;
  FiniteSystem f = Tabular::generate({.agents = n, .dim = 2, .states = 4}, 5, 0), g = f;
  f.steps = g.steps = Trial::kSteps * setting.batch;
  for (std::int64_t i = 0; i < n * f.steps; ++i)
    f.order.push_back(static_cast<int>(i * i % 7 % f.states));
  g.order.resize(f.order.size());
  std::vector<std::int64_t> to(n);  // agent i of f is agent to[i] of g
  for (std::int64_t i = 0; i < n; ++i) to[static_cast<std::size_t>(i)] = (i * 77 + 31) % n;
  const auto move = [&](const auto& from, auto& into, std::int64_t width) {
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(from.begin() + i * width, width,
                  into.begin() + to[static_cast<std::size_t>(i)] * width);
  };
  move(f.mu, g.mu, f.states);
  move(f.theta, g.theta, f.k);
  move(f.order, g.order, f.steps);
  const Tabular a(f, Tabular::Coe::kAuto), b(g, Tabular::Coe::kAuto);
  const std::unique_ptr<Team> team = serial_team();
  const StepSizes step = constant_step(stable_step(a));
  RunOptions options;
  options.steps = Trial::kSteps;
  Run first(a, one_method(method, step, setting.period, setting.batch), options, *team),
      second(b, one_method(method, step, setting.period, setting.batch), options, *team);
  first.advance(Trial::kSteps);
  second.advance(Trial::kSteps);
  for (std::int64_t i = 0; i < n; ++i)
    for (int r = 0; r < 2; ++r)
      ASSERT_NEAR(first.solution(0, i, r), second.solution(0, to[static_cast<std::size_t>(i)], r),
                  1e-11)
          << "agent " << i;
}

// With agents all alike it ends much nearer to the solution than it started.
inline void learns(const MethodKind& method, const ProblemKind& kind) {
  SCOPED_TRACE(::testing::Message() << method.name << " on " << kind.name);
  Given alike;
  for (const Param& p : kind.params)
    if (p.name == "delta_env" || p.name == "delta_obj") {
      alike[std::string(p.name)] = 0.0;
    } else if (p.name == "labels") {  // the noise of 0/1 labels drowns the rest
      alike["labels"] = std::string(p.choices.front());
    }
  const std::unique_ptr<Problem> problem = make_problem(kind, 20, alike);
  if (problem->truth() == nullptr) return;
  const std::unique_ptr<Team> team = serial_team();
  if (Trial(method, *problem, {}).refused()) return;
  RunOptions options;
  // Long enough to forget the start, if that can be told: exp(-2 alpha lambda steps) < e^-5.
  double alpha = stable_step(*problem);
  options.steps = 3000;
  if (problem->means() != nullptr) {
    const double need = 2.5 / (alpha * monotonicity(*problem).central);
    if (need > 3000)
      alpha *= 4,
          options.steps = std::min<std::int64_t>(static_cast<std::int64_t>(need / 4), 60000);
  } else {
    alpha *= kind.name == "poisson" ? 2 : 5;  // its directions have no Lipschitz bound
  }
  Run run(*problem, one_method(method, constant_step(alpha)), options, *team);
  run.advance(options.steps);
  const Record record = run.finish().front();
  EXPECT_LT(record.mse, 0.1 * record.curve.front()) << "after the first round and at the end";
}

inline void check_method(const MethodKind& method, const ProblemKind& kind,
                         std::int64_t agents = 600, const Given& given = {}) {
  const std::unique_ptr<Problem> problem = make_problem(kind, agents);
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(::testing::Message()
                 << method.name << " on " << kind.name << ", period " << setting.period
                 << ", batch " << setting.batch << (setting.own_steps ? ", own steps" : "")
                 << (setting.participation < 1 ? ", partial participation" : "")
                 << (setting.compress.on() ? ", " + to_text(setting.compress) : ""));
    const Trial trial(method, *problem, setting, given);
    if (trial.refused()) continue;
    gives_finite_results(trial);
    is_the_same_on_any_team(trial);
    const bool first = &setting == &settings().front(),
               some = setting.participation < 1 || setting.compress.on();
    if (first || (given.empty() && (some || &setting == &settings()[5])))
      is_the_same_on_any_ranks(trial);
    survives_saving(trial);
    keeps_nothing_to_itself(trial);
    does_not_mind_company(trial);
    if (!setting.own_steps && !some && given.empty()) does_not_mind_the_order(method, setting);
    if (::testing::Test::HasFailure()) return;
  }
  if (given.empty()) learns(method, kind);
}

// ---- problems ----

// rows x 64 numbers.
struct Rows {
  explicit Rows(int n) : data(static_cast<std::size_t>(n) * kLanes), rows(n) {}
  Out out() const { return {data.data(), rows}; }
  In in() const { return out(); }
  double operator()(int r, int l) const { return data.data()[r * kLanes + l]; }
  Buffer data;
  int rows;
};

// One block's memory and samples.
struct World {
  World(const Problem& problem, Lanes which) : lanes(which) {
    Layout world, sample;
    problem.declare(world, sample);
    memory = Buffer(static_cast<std::size_t>(world.rows()) * kLanes);
    s = std::make_unique<Rows>(sample.rows());
  }
  void draw(const Problem& problem, std::uint32_t step) {
    const std::vector<double> zero(static_cast<std::size_t>(problem.shape().d));
    problem.draw({{5, 2, step}, {zero.data(), problem.shape().d, 1}}, {lanes, memory.data()},
                 s->out());
  }
  Lanes lanes;
  Buffer memory;
  std::unique_ptr<Rows> s;
};

// A problem that has let go of all blocks but one says the same of it.
inline void keeps_a_part(const ProblemKind& kind, const Problem& whole, std::int64_t block,
                         const Given& given) {
  const Shape shape = whole.shape();
  const std::unique_ptr<Problem> part = make_problem(kind, shape.agents, given);
  part->keep(block, block + 1);
  const Lanes lanes = lanes_of(block, shape.agents);
  const std::vector<double> x(static_cast<std::size_t>(shape.d), 0.3);
  const auto seen = [&](const Problem& problem) {
    World world(problem, lanes);
    world.draw(problem, 0);
    const Rows Ax(shape.d), b(shape.d), error(1);
    Scratch scratch;
    problem.direction(lanes, world.s->in(), {}, {x.data(), shape.d, 1}, scratch, Ax.out());
    problem.objective(lanes, world.s->in(), b.out());
    if (problem.truth() != nullptr)
      problem.error(lanes, {x.data(), shape.d, 1}, scratch, error.out());
    std::vector<double> all;
    for (const Rows* rows : {static_cast<const Rows*>(world.s.get()), &Ax, &b, &error})
      for (int r = 0; r < rows->rows; ++r)
        for (int l = 0; l < lanes.count; ++l) all.push_back((*rows)(r, l));
    return all;
  };
  EXPECT_TRUE(same_bits(seen(*part), seen(whole))) << "block " << block;
}

inline void check_problem(const ProblemKind& kind, std::int64_t agents = 150,
                          const Given& given = {}) {
  SCOPED_TRACE(kind.name);
  const std::unique_ptr<Problem> made = make_problem(kind, agents, given),
                                 again = make_problem(kind, agents, given);
  const Problem& problem = *made;
  const Shape shape = problem.shape();
  const int d = shape.d, k = shape.k;
  ASSERT_GT(shape.agents, 0);
  ASSERT_GT(d, 0);
  EXPECT_EQ(central_start(problem).x.size(), static_cast<std::size_t>(d));
  EXPECT_EQ(central_start(problem).theta.size(), static_cast<std::size_t>(k));
  const Facets facets = problem.facets();
  EXPECT_EQ(facets.linear != nullptr, k > 0);
  EXPECT_EQ(facets.features != nullptr, shape.p > 0);
  EXPECT_EQ(facets.occupancy != nullptr, shape.acts);
  const bool is_linear = facets.means != nullptr;  // only then are there means
  const double n = static_cast<double>(shape.agents);

  std::vector<double> plain(static_cast<std::size_t>(d)), M;  // sum_j g_j; sum_j psi(s_j) g_j'
  std::vector<double> coe_mean(static_cast<std::size_t>(k));
  const Densities* densities = facets.densities;
  if (densities != nullptr) M.resize(static_cast<std::size_t>(densities->p() * d));
  Scratch scratch;

  for (std::int64_t b = 0; b < blocks_of(shape.agents); ++b) {
    const Lanes lanes = lanes_of(b, shape.agents);
    keeps_a_part(kind, problem, b, given);
    // A draw is a pure function of its key and the world, and another instance draws the same.
    World world(problem, lanes), same(*again, lanes), later(problem, lanes);
    world.draw(problem, 0);
    same.draw(*again, 0);
    later.draw(problem, 0);
    later.draw(problem, 1);
    bool moved = false;
    const Rows& s = *world.s;
    for (int r = 0; r < s.rows; ++r)
      for (int l = 0; l < lanes.count; ++l) {
        ASSERT_EQ(s(r, l), (*same.s)(r, l));
        moved |= s(r, l) != (*later.s)(r, l);
      }
    EXPECT_TRUE(moved || shape.agents < 20) << "the second draw is the first again";

    // Where there are means G(s, x) is linear; x may be one column for all; what padding lanes hold
    // stays there.
    const Rows x(d), y(d), sum(d), Ax(d), Ay(d), Asum(d), own(d), Aown(d), Ashared(d);
    std::vector<double> column;
    for (int r = 0; r < d; ++r) column.push_back(std::cos(0.7 * r) + 0.1);
    const In shared{column.data(), d, 1};
    for (int r = 0; r < d; ++r)
      for (int l = 0; l < kLanes; ++l) {
        const bool real = l < lanes.count;
        x.out().row(r)[l] = real ? std::sin(r + 2.0 * l) : NAN;
        y.out().row(r)[l] = real ? std::cos(2.0 * r - l) : NAN;
        sum.out().row(r)[l] = 2 * x(r, l) + y(r, l);
        own.out().row(r)[l] = real ? column[static_cast<std::size_t>(r)] : NAN;
      }
    const auto G = [&](In at, const Rows& to) {
      scratch.clear();
      problem.direction(lanes, s.in(), {}, at, scratch, to.out());
    };
    G(x.in(), Ax), G(y.in(), Ay), G(sum.in(), Asum), G(own.in(), Aown), G(shared, Ashared);
    const Rows own_b(d);
    problem.objective(lanes, s.in(), own_b.out());
    for (int r = 0; r < d; ++r)
      for (int l = 0; l < lanes.count; ++l) {
        const double want = 2 * Ax(r, l) + Ay(r, l);
        if (is_linear) {
          ASSERT_NEAR(Asum(r, l), want, 1e-10 * (1 + std::abs(want)));
        }
        ASSERT_NEAR(Aown(r, l), Ashared(r, l), 1e-12 * (1 + std::abs(Aown(r, l))));
        ASSERT_TRUE(std::isfinite(own_b(r, l)));
        plain[static_cast<std::size_t>(r)] += Ax(r, l);
      }
    if (k > 0) {  // so is Phi(s) theta, and coe is what central objective estimation follows
      std::vector<double> theta(static_cast<std::size_t>(k), 0.5);
      const Rows bhat(d), g(k);
      facets.linear->Phi(lanes, s.in(), {theta.data(), k, 1}, scratch, bhat.out());
      facets.linear->coe(lanes, s.in(), own_b.in(), {theta.data(), k, 1}, bhat.in(), g.out());
      for (int r = 0; r < d; ++r)
        for (int l = 0; l < lanes.count; ++l) ASSERT_TRUE(std::isfinite(bhat(r, l)));
      for (int r = 0; r < k; ++r)
        for (int l = 0; l < lanes.count; ++l) ASSERT_TRUE(std::isfinite(g(r, l)));
      // A shorter way to all of them gives the same, for a shared x and for the agents' own.
      const Rows own_theta(k), gc(d), gx(d), gtheta(k);
      copy({theta.data(), k, 1}, own_theta.out());
      for (const bool common : {true, false}) {
        facets.linear->at_centre(problem,
                                 {lanes, s.in(), own_b.in(), common ? shared : own.in(),
                                  common ? In{theta.data(), k, 1} : own_theta.in()},
                                 scratch, {gc.out(), gx.out(), gtheta.out()});
        for (int l = 0; l < lanes.count; ++l) {
          for (int r = 0; r < d; ++r) {
            const double close = 1e-12 * (1 + std::abs(Ashared(r, l)) + std::abs(bhat(r, l)));
            ASSERT_NEAR(gc(r, l), Ashared(r, l) - bhat(r, l), close);
            ASSERT_NEAR(gx(r, l), Ashared(r, l) - own_b(r, l), close);
          }
          for (int r = 0; r < k; ++r)
            ASSERT_NEAR(gtheta(r, l), g(r, l), 1e-12 * (1 + std::abs(g(r, l))));
        }
      }
    }
    for (const In at : {shared, own.in()}) {
      const Rows g(d);
      problem.direction(lanes, s.in(), own_b.in(), at, scratch, g.out());
      for (int r = 0; r < d; ++r)
        for (int l = 0; l < lanes.count; ++l)
          ASSERT_NEAR(g(r, l), Ashared(r, l) - own_b(r, l), 1e-12 * (1 + std::abs(Ashared(r, l))));
    }
    if (densities != nullptr) {
      scratch.clear();
      densities->accumulate(lanes, s.in(), Ax.in(), scratch, M.data());
      const Rows rho(1);
      densities->own(lanes, s.in(), scratch, rho.out());
      for (int l = 0; l < lanes.count; ++l) {
        EXPECT_GT(rho(0, l), 0);  // an agent's own sample is possible for it
        EXPECT_LE(rho(0, l), n * (1 + 1e-12));
      }
    }
    const Rows start(d);
    problem.start(lanes, start.out());
    for (int r = 0; r < d; ++r)
      for (int l = 0; l < lanes.count; ++l) ASSERT_TRUE(std::isfinite(start(r, l)));

    if (problem.truth() == nullptr) continue;
    const Rows error(1), mean_b(d), mean_A(d);
    const In solution = problem.truth()->x.block(b)[Field{0, d}];
    problem.error(lanes, solution, scratch, error.out());
    for (int l = 0; l < lanes.count; ++l) EXPECT_LE(error(0, l), 1e-20);
    if (!is_linear) continue;
    facets.means->mean_apply(lanes, solution, mean_A.out());
    facets.means->mean_objective(lanes, mean_b.out());
    for (int r = 0; r < d; ++r)
      for (int l = 0; l < lanes.count; ++l)
        ASSERT_NEAR(mean_A(r, l), mean_b(r, l), 1e-9 * (1 + std::abs(mean_b(r, l))));
    if (k > 0) {
      const Rows g(k);
      facets.means->mean_coe(lanes, {problem.truth()->thetac.data(), k, 1}, g.out());
      for (int r = 0; r < k; ++r)
        for (int l = 0; l < lanes.count; ++l) coe_mean[static_cast<std::size_t>(r)] += g(r, l) / n;
    }
  }

  for (double g : coe_mean) EXPECT_NEAR(g, 0, 1e-9);
  // The ratios average to one over agents: the mean of the corrected sums is the plain sum.
  if (densities != nullptr) {
    std::vector<double> mean(static_cast<std::size_t>(d));
    double size = 1;
    for (std::int64_t b = 0; b < blocks_of(shape.agents); ++b) {
      const Lanes lanes = lanes_of(b, shape.agents);
      const Rows rg(d);
      densities->correct(lanes, M.data(), rg.out());
      for (int r = 0; r < d; ++r)
        for (int l = 0; l < lanes.count; ++l) {
          mean[static_cast<std::size_t>(r)] += rg(r, l) / n;
          size = std::max(size, std::abs(rg(r, l)));
        }
    }
    for (std::size_t r = 0; r < mean.size(); ++r) EXPECT_NEAR(mean[r], plain[r], 1e-11 * n * size);
  }
  // A problem that can be enumerated says with which probabilities.
  for (std::int64_t i = 0; facets.finite != nullptr && i < shape.agents; ++i) {
    double sum = 0;
    for (int o = 0; o < facets.finite->outcomes(); ++o) sum += facets.finite->probability(i, o);
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

}  // namespace affpcl::conformance
