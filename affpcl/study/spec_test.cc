#include "affpcl/study/spec.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"

namespace affpcl {
namespace {

using Overrides = std::vector<std::string>;

const std::string kProblem = "[problem]\nkind = \"gaussian\"\nagents = 4\n";
const std::string kRun = "[run]\nsteps = 20\n";
const std::string kMethod = "[[method]]\nkind = \"affpcl\"\n";
const std::string kGood = kProblem + kRun + kMethod;

std::string complaint(const std::string& text, const Overrides& set = {}) {
  try {
    read_study(text, "my.toml", set);
  } catch (const BadInput& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("not BadInput: ") + e.what();
  }
  return "accepted";
}

// Refused in one sentence that names the file and contains all of `words`.
void refused(const std::string& text, const std::vector<std::string>& words,
             const Overrides& set = {}) {
  const std::string said = complaint(text, set);
  EXPECT_EQ(said.rfind("my.toml", 0), 0u) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  for (const std::string& w : words)
    EXPECT_NE(said.find(w), std::string::npos) << "'" << w << "' is not in: " << said;
}

Spec spec_of(const std::string& text, const Overrides& set = {}) {
  const Study study = read_study(text, "my.toml", set);
  EXPECT_EQ(study.settings.size(), 1u);
  return study.settings.front().spec;
}

// ---- good specs ----

TEST(SpecReader, DefaultsAreTheDesigns) {
  const Spec s = spec_of(kProblem + kMethod);
  EXPECT_EQ(s.problem_kind, "gaussian");
  EXPECT_EQ(s.problem.integer("agents"), 4);
  EXPECT_EQ(s.problem.integer("dim"), 5);
  EXPECT_EQ(s.problem.number("eps_A"), 1.0);
  EXPECT_EQ(s.problem.number("eps_b"), 0.5);
  EXPECT_EQ(s.problem.number("spread"), 4.0);
  EXPECT_TRUE(s.redraw_system);
  EXPECT_EQ(s.run.steps, 60);
  EXPECT_EQ(s.replicates, 10);
  EXPECT_EQ(s.run.seed, 1u);
  EXPECT_EQ(s.run.tail, 10);
  EXPECT_EQ(s.run.iterate, RunOptions::Iterate::kLast);
  EXPECT_EQ(s.run.curve_agents, (std::vector<std::int64_t>{0, -1}));
  EXPECT_EQ(s.step_size.kind, Schedule::Kind::kConstant);
  EXPECT_EQ(s.step_size.value, 0.01);
  EXPECT_FALSE(s.step_size_central.has_value());
  ASSERT_EQ(s.methods.size(), 1u);
  EXPECT_EQ(s.methods[0].name, "affpcl");
  EXPECT_EQ(s.methods[0].period, 1);
  EXPECT_EQ(s.methods[0].batch, 1);
  EXPECT_EQ(s.methods[0].values.text("ratio"), "exact");
  EXPECT_EQ(s.methods[0].values.text("objective"), "auto");
  EXPECT_EQ(s.methods[0].values.text("central"), "own");
  EXPECT_EQ(s.methods[0].values.text("guard"), "none");
}

const std::string kFull = R"(title = "everything"
[problem]
kind = "tabular"
agents = 6
dim = 2
states = 4
delta_env = 1            # a whole number serves as a number
redraw = "samples"
[run]
steps = 30
replicates = 3
seed = 9007199254740993  # beyond what a double holds
step_size = 0.02
step_size_central = {schedule = "log-constant", per = "min"}
step_size_objective = {schedule = "diminishing", t0 = 12}
step_size_ratio = {schedule = "constant", value = 0.5}
tail = 7
iterate = "polyak"
curve_agents = [0, 3, -1]
curve_points = 5
[[method]]
kind = "affpcl"
name = "ours, unguarded"
ratio = "none"
central = "estimated"
period = 3
batch = 2
[[method]]
kind = "independent"
step_size = 0.5
)";

TEST(SpecReader, EveryKeyArrives) {
  const Spec s = spec_of(kFull);
  EXPECT_FALSE(s.redraw_system);
  EXPECT_EQ(s.problem.number("delta_env"), 1.0);
  EXPECT_EQ(s.problem.integer("states"), 4);
  EXPECT_EQ(s.run.steps, 30);
  EXPECT_EQ(s.replicates, 3);
  EXPECT_EQ(s.run.seed, 9007199254740993u);
  EXPECT_EQ(s.run.tail, 7);
  EXPECT_EQ(s.run.iterate, RunOptions::Iterate::kPolyak);
  EXPECT_EQ(s.run.curve_agents, (std::vector<std::int64_t>{0, 3, -1}));
  EXPECT_EQ(s.run.curve_points, 5);
  EXPECT_EQ(s.step_size.value, 0.02);
  ASSERT_TRUE(s.step_size_central && s.step_size_objective && s.step_size_ratio);
  EXPECT_EQ(s.step_size_central->kind, Schedule::Kind::kLogConstant);
  EXPECT_FALSE(s.step_size_central->per_agent);
  EXPECT_EQ(s.step_size_objective->kind, Schedule::Kind::kDiminishing);
  EXPECT_TRUE(s.step_size_objective->per_agent);
  EXPECT_EQ(s.step_size_objective->t0, 12);
  EXPECT_EQ(s.step_size_ratio->kind, Schedule::Kind::kConstant);
  EXPECT_EQ(s.step_size_ratio->value, 0.5);
  ASSERT_EQ(s.methods.size(), 2u);
  EXPECT_EQ(s.methods[0].name, "ours, unguarded");
  EXPECT_EQ(s.methods[0].kind, "affpcl");
  EXPECT_EQ(s.methods[0].period, 3);
  EXPECT_EQ(s.methods[0].batch, 2);
  EXPECT_EQ(s.methods[0].values.text("ratio"), "none");
  EXPECT_EQ(s.methods[0].values.text("central"), "estimated");
  EXPECT_FALSE(s.methods[0].step_size.has_value());
  EXPECT_EQ(s.methods[1].name, "independent");
  EXPECT_EQ(s.methods[1].step_size->value, 0.5);
  EXPECT_EQ(read_study(kFull, "x").title, "everything");
}

TEST(SpecReader, TheKeptTextIsEnoughToRunItAgain) {
  const std::string swept = kFull + "[sweep]\n\"problem.agents+run.steps\" = [10, 20]\n";
  const Study first =
      read_study(swept, "a.toml", Overrides{"run.seed=5", "method.independent.batch=3"});
  const Study again = read_study(first.toml, "b.toml");
  EXPECT_EQ(again.toml, first.toml);
  EXPECT_EQ(again.json, first.json);
  ASSERT_EQ(again.settings.size(), 2u);
  EXPECT_EQ(again.settings[1].spec.run.seed, 5u);
  EXPECT_EQ(again.settings[1].spec.methods[1].batch, 3);
  EXPECT_EQ(again.settings[1].spec.run.steps, 20);
  EXPECT_EQ(again.settings[1].at, first.settings[1].at);
  const Json j = parse_json(first.json);
  EXPECT_EQ(j["run"]["seed"], 5);
  EXPECT_EQ(j["problem"]["kind"], "tabular");
  EXPECT_EQ(j["run"]["step_size_objective"]["t0"], 12);
  EXPECT_EQ(j["method"][1]["step_size"], 0.5);
}

TEST(SpecReader, TheKeptTextHasItsListsOnOneLine) {
  const std::string text = read_study(kFull + R"(
[sweep]
"problem.delta_env" = [0.0, 0.05, 1.0, -0.0]
"run.step_size" = [0.5, {schedule = "log-constant", per = "agent"}]
)",
                                      "a.toml", {})
                               .toml;
  EXPECT_NE(text.find("\n[sweep]\n\"problem.delta_env\" = [0.0, 0.05, 1.0, -0.0]\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("[0.5, {per = \"agent\", schedule = \"log-constant\"}]"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n[[method]]\n"), std::string::npos) << text;
}

TEST(SpecReader, TheKeptTextHoldsAnyText) {
  const auto title = [](const Study& s) { return s.title; };
  const Study first = read_study(
      "title = \"\"\"a\nb\\t'\\\"\\\\ \\u0001 é\"\"\"\n" + kFull.substr(kFull.find("[problem]")),
      "a", {});
  EXPECT_EQ(title(first), "a\nb\t'\"\\ \x01 é");
  const Study again = read_study(first.toml, "b", {});
  EXPECT_EQ(title(again), title(first));
  EXPECT_EQ(again.toml, first.toml);
}

TEST(SpecReader, TailIsTenOrAllIfFewer) {
  EXPECT_EQ(spec_of(kProblem + "[run]\nsteps = 6\n" + kMethod).run.tail, 6);
  EXPECT_EQ(spec_of(kProblem + "[run]\nsteps = 6\ntail = 6\n" + kMethod).run.tail, 6);
  EXPECT_EQ(spec_of(kProblem + "[run]\nsteps = 600\n" + kMethod).run.tail, 10);
}

// ---- sweeps ----

using At = std::vector<std::pair<std::string, Value>>;

TEST(SpecSweep, JoinedKeysMoveTogether) {
  const Study s = read_study(
      kGood + "[sweep]\n\"problem.delta_env+problem.delta_obj\" = [0, 0.05, 0.8]\n", "x");
  ASSERT_EQ(s.settings.size(), 3u);
  EXPECT_EQ(s.settings[1].at,
            (At{{"problem.delta_env", Value(0.05)}, {"problem.delta_obj", Value(0.05)}}));
  for (const Setting& one : s.settings)
    EXPECT_EQ(one.spec.problem.number("delta_env"), one.spec.problem.number("delta_obj"));
  EXPECT_EQ(s.settings[2].spec.problem.number("delta_obj"), 0.8);
}

TEST(SpecSweep, EveryCombinationOfKeys) {
  const Study s = read_study(kGood +
                                 "[sweep]\n\"problem.agents\" = [2, 3]\n\"run.steps\" = [10, 20, "
                                 "30]\n\"method.affpcl.ratio\" = [\"exact\", \"none\"]\n",
                             "x");
  ASSERT_EQ(s.settings.size(), 12u);
  std::set<std::string> seen;
  for (const Setting& one : s.settings) {
    ASSERT_EQ(one.at.size(), 3u);
    seen.insert(std::to_string(one.spec.problem.integer("agents")) + ' ' +
                std::to_string(one.spec.run.steps) + ' ' +
                one.spec.methods[0].values.text("ratio"));
  }
  EXPECT_EQ(seen.size(), 12u);
}

TEST(SpecSweep, GoesInTheOrderOfTheFile) {
  // The first key is the slowest, also where the alphabet says otherwise.
  const Study s =
      read_study(kGood + "[sweep]\n\"run.steps\" = [10, 20]\n\"problem.agents\" = [2, 3]\n", "x");
  ASSERT_EQ(s.settings.size(), 4u);
  EXPECT_EQ(s.settings[0].at.front().first, "run.steps");
  EXPECT_EQ(s.settings[1].at, (At{{"run.steps", Value(std::int64_t{10})},
                                  {"problem.agents", Value(std::int64_t{3})}}));
}

TEST(SpecSweep, KeysWithoutQuotesMeanTheSame) {
  const Study quoted = read_study(kGood + "[sweep]\n\"problem.agents\" = [2, 3]\n", "x"),
              plain = read_study(kGood + "[sweep]\nproblem.agents = [2, 3]\n", "x"),
              nested = read_study(kGood + "[sweep.problem]\nagents = [2, 3]\n", "x");
  for (const Study* s : {&plain, &nested}) {
    ASSERT_EQ(s->settings.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(s->settings[i].at, quoted.settings[i].at);
      EXPECT_EQ(s->settings[i].spec.problem.integer("agents"), static_cast<std::int64_t>(2 + i));
    }
  }
}

TEST(SpecSweep, MethodsByNameOrAllAtOnce) {
  const std::string two = kGood + "[[method]]\nkind = \"affpcl\"\nname = \"b.c\"\n";
  const Study one = read_study(two + "[sweep]\n\"method.b.c.period\" = [1, 4]\n", "x");
  ASSERT_EQ(one.settings.size(), 2u);
  EXPECT_EQ(one.settings[1].spec.methods[0].period, 1);
  EXPECT_EQ(one.settings[1].spec.methods[1].period, 4);
  const Study all = read_study(two + "[sweep]\n\"method.period\" = [1, 4]\n", "x");
  EXPECT_EQ(all.settings[1].spec.methods[0].period, 4);
  EXPECT_EQ(all.settings[1].spec.methods[1].period, 4);
}

TEST(SpecSweep, StepTablesListsAndTexts) {
  const Study s =
      read_study(kGood + "[sweep]\n\"run.step_size\" = [0.1, {schedule = \"diminishing\"}]\n", "x");
  ASSERT_EQ(s.settings.size(), 2u);
  EXPECT_EQ(s.settings[1].at, (At{{"run.step_size", Value(std::string("diminishing"))}}));
  EXPECT_EQ(s.settings[1].spec.step_size.kind, Schedule::Kind::kDiminishing);
  EXPECT_EQ(s.settings[0].spec.step_size.value, 0.1);
  const Study lists = read_study(kGood + "[sweep]\n\"run.curve_agents\" = [[0], [1, 2]]\n", "x");
  EXPECT_EQ(lists.settings[1].spec.run.curve_agents, (std::vector<std::int64_t>{1, 2}));
}

TEST(SpecSweep, IsCheckedBeforeAnythingRuns) {
  refused(kGood + "[sweep]\n\"problem.agents\" = [2, 0]\n", {"problem.agents", "0"});
  refused(kGood + "[sweep]\n\"problem.agnets\" = [2]\n", {"agnets", "did you mean 'agents'"});
  refused(kGood + "[sweep]\n\"problem.agents\" = 3\n", {"problem.agents", "list", "line 9"});
  refused(kGood + "[sweep]\n\"problem.agents\" = []\n", {"problem.agents", "list"});
  refused(kGood + "[sweep]\n\"agents\" = [1]\n", {"agents"});
  refused(kGood + "[sweep]\n\"prblem.agents\" = [1]\n",
          {"prblem.agents", "did you mean 'problem'"});
  refused(kGood + "[sweep]\n\"method.nobody.period\" = [1]\n", {"method.nobody.period"});
  refused(kGood + "[sweep]\n\"run.tail\" = [1, 50]\n", {"run.tail", "50", "20"});
  refused(kGood + "[sweep]\n\"problem.agents\" = [2, \"many\"]\n", {"problem.agents", "many"});
  refused("sweep = 3\n" + kGood, {"sweep"});
  std::string huge = "[sweep]\n";
  for (const char* key : {"problem.agents", "run.steps", "run.seed", "run.replicates"}) {
    huge += "\"" + std::string(key) + "\" = [";
    for (int i = 0; i < 20; ++i) huge += std::to_string(20 + i) + ", ";
    huge += "]\n";
  }
  refused(kGood + huge, {"160000 combinations"});
}

// ---- --set ----

TEST(SpecSet, ReachesEverySection) {
  const Spec s =
      spec_of(kGood + "[[method]]\nkind = \"independent\"\nname = \"alone\"\n",
              {"problem.agents=9", "problem.delta_env=1e-1", "run.replicates=2",
               "run.iterate=polyak", "run.step_size={schedule = \"log-constant\", per = \"min\"}",
               "run.curve_agents=[0, 8]", "method.affpcl.ratio=none", "method.alone.period=4",
               "method.batch=2", "method.alone.name=solo"});
  EXPECT_EQ(s.problem.integer("agents"), 9);
  EXPECT_EQ(s.problem.number("delta_env"), 0.1);
  EXPECT_EQ(s.replicates, 2);
  EXPECT_EQ(s.run.iterate, RunOptions::Iterate::kPolyak);  // a bare word is a text
  EXPECT_EQ(s.step_size.kind, Schedule::Kind::kLogConstant);
  EXPECT_EQ(s.run.curve_agents, (std::vector<std::int64_t>{0, 8}));
  EXPECT_EQ(s.methods[0].values.text("ratio"), "none");
  EXPECT_EQ(s.methods[0].period, 1);
  EXPECT_EQ(s.methods[1].period, 4);
  EXPECT_EQ(s.methods[0].batch, 2);
  EXPECT_EQ(s.methods[1].batch, 2);
  EXPECT_EQ(s.methods[1].name, "solo");
}

TEST(SpecSet, TheLastOneWins) {
  EXPECT_EQ(spec_of(kGood, {"run.seed=3", "run.seed=4"}).run.seed, 4u);
}

TEST(SpecSet, MakesTheSectionIfThereIsNone) {
  EXPECT_EQ(spec_of(kProblem + kMethod, {"run.seed=3"}).run.seed, 3u);
  EXPECT_EQ(spec_of(kMethod, {"problem.kind=tabular"}).problem_kind, "tabular");
}

TEST(SpecSet, BadOnesAreRefused) {
  EXPECT_NE(complaint(kGood, {"run.seed"}).find("set = run.seed"), std::string::npos);
  EXPECT_NE(complaint(kGood, {"=3"}).find("set = =3"), std::string::npos);
  refused(kGood, {"sedd", "did you mean 'seed'"}, {"run.sedd=1"});
  refused(kGood, {"seed"}, {"seed=1"});
  refused(kGood, {"rnu.seed", "did you mean 'run'"}, {"rnu.seed=1"});
  refused(kGood, {"method.nobody.batch"}, {"method.nobody.batch=1"});
  refused(kGood, {"run.seed", "-1"}, {"run.seed=-1"});
  refused(kGood, {"run.seed", "\"\""}, {"run.seed="});
  refused(kGood, {"problem.agents", "2.5", "whole number"}, {"problem.agents=2.5"});
}

// ---- refusals: the issue's list ----

TEST(SpecRefuses, UnknownKeysWithASuggestionAndTheirLine) {
  refused(kProblem + "agnets = 3\n" + kRun + kMethod, {"line 4", "problem.agnets", "'agents'"});
  refused(kProblem + kRun + "stpes = 3\n" + kMethod, {"line 6", "run.stpes", "'steps'"});
  refused(kGood + "raito = \"none\"\n", {"line 8", "method.raito", "'ratio'"});
  refused("[prblem]\n" + kGood, {"line 1", "prblem", "'problem'"});
  refused(kProblem + "[run]\nstep_size = {schedul = \"constant\"}\n" + kMethod,
          {"line 5", "run.step_size.schedul", "'schedule'"});
  refused("[problem]\nkind = \"gausian\"\n" + kMethod, {"gausian", "'gaussian'"});
  refused(kProblem + "[[method]]\nkind = \"afpcl\"\n", {"afpcl", "'affpcl'"});
  refused(kGood + "ratio = \"exakt\"\n", {"method.ratio", "exakt", "'exact'"});
  refused(kProblem + "redraw = \"sistem\"\n" + kMethod, {"problem.redraw", "sistem", "'system'"});
  refused(kProblem + "[run]\niterate = \"lst\"\n" + kMethod, {"run.iterate", "lst", "'last'"});
  refused(kProblem + "[[method]]\nkind = \"independent\"\nratio = \"none\"\n", {"method.ratio"});
}

TEST(SpecRefuses, WrongTypes) {
  refused("[problem]\nkind = \"gaussian\"\nagents = \"four\"\n" + kMethod,
          {"problem.agents", "four", "whole number"});
  refused("[problem]\nkind = \"gaussian\"\nagents = 2.5\n" + kMethod, {"problem.agents", "2.5"});
  refused("[problem]\nkind = \"gaussian\"\nfirst_central = 1\n" + kMethod,
          {"problem.first_central", "true or false"});
  refused("[problem]\nkind = 3\n" + kMethod, {"problem.kind", "line 2"});
  refused("[problem]\nagents = 3\n" + kMethod, {"problem.kind"});
  refused(kMethod, {"[problem]"});
  refused("problem = 3\n" + kMethod, {"problem", "line 1"});
  refused("run = 3\n" + kProblem + kMethod, {"run", "line 1"});
  refused(kProblem + "[run]\nseed = true\n" + kMethod, {"run.seed", "true"});
  refused(kProblem + "[run]\nsteps = \"many\"\n" + kMethod, {"run.steps", "many"});
  refused(kProblem + "[run]\ncurve_agents = 3\n" + kMethod, {"run.curve_agents", "3", "list"});
  refused(kProblem + "[run]\ncurve_agents = [0, \"last\"]\n" + kMethod,
          {"run.curve_agents", "line 5"});
  refused(kProblem + "[run]\ncurve_agents = [true]\n" + kMethod, {"run.curve_agents"});
  refused(kProblem + "[run]\nsteps = 1979-05-27\n" + kMethod, {"run.steps", "line 5"});
  refused(kProblem + "[run]\nsteps = {a = 1}\n" + kMethod, {"run.steps", "line 5"});
  refused(kGood + "name = 5\n", {"method.name", "5", "text"});
  refused(kProblem + "[method]\nkind = \"affpcl\"\n", {"[[method]]", "line 4"});
  refused("method = [1, 2]\n" + kProblem, {"[[method]]"});
  refused(kProblem + "[[method]]\nname = \"x\"\n", {"method.kind"});
}

TEST(SpecRefuses, NumbersOutOfRange) {
  refused("[problem]\nkind = \"gaussian\"\nagents = 0\n" + kMethod,
          {"problem.agents = 0", "at least 1"});
  refused("[problem]\nkind = \"gaussian\"\nagents = -3\n" + kMethod, {"problem.agents = -3"});
  refused("[problem]\nkind = \"gaussian\"\nagents = 1000000000000\n" + kMethod,
          {"problem.agents = 1000000000000"});
  refused(kProblem + "dim = 0\n" + kMethod, {"problem.dim = 0"});
  refused(kProblem + "delta_env = -0.1\n" + kMethod, {"problem.delta_env = -0.1"});
  refused(kProblem + "delta_env = nan\n" + kMethod, {"problem.delta_env = nan"});
  refused(kProblem + "spread = inf\n" + kMethod, {"problem.spread = inf"});
  refused(kProblem + "[run]\nsteps = 0\n" + kMethod, {"run.steps = 0"});
  refused(kProblem + "[run]\nreplicates = 0\n" + kMethod, {"run.replicates = 0"});
  refused(kProblem + "[run]\nseed = -1\n" + kMethod, {"run.seed = -1"});
  refused(kProblem + "[run]\ntail = -1\n" + kMethod, {"run.tail = -1"});
  refused(kProblem + "[run]\nsteps = 5\ntail = 6\n" + kMethod, {"run.tail = 6", "run.steps = 5"});
  refused(kProblem + "[run]\ncurve_agents = [4]\n" + kMethod, {"run.curve_agents", "4 agents"});
  refused(kProblem + "[run]\ncurve_agents = [-5]\n" + kMethod, {"run.curve_agents", "-5"});
  refused(kProblem + "[run]\ncurve_agents = [0.5]\n" + kMethod, {"run.curve_agents", "0.5"});
  refused(kProblem + "[run]\ncurve_agents = [1e300]\n" + kMethod, {"run.curve_agents"});
  refused(kGood + "period = 0\n", {"method.period = 0"});
  refused(kGood + "batch = 0\n", {"method.batch = 0"});
}

// Whichever way the step came in, the sentence has the key and the value.
TEST(SpecRefuses, StepsThatAreNotPositiveAndFinite) {
  const auto both_ways = [](const std::string& key, const std::string& bad,
                            const std::string& said) {
    refused(kProblem + "[run]\n" + key + " = " + bad + "\n" + kMethod, {"run." + key, "line 5"});
    refused(kGood, {"run." + key, said}, {"run." + key + "=" + bad});
  };
  for (const char* bad : {"-0.01", "0", "nan", "inf", "-inf", "true", "[0.1]"})
    both_ways("step_size", bad, bad);
  both_ways("step_size", "\"fast\"", "fast");
  for (const char* key : {"step_size_central", "step_size_objective", "step_size_ratio"})
    both_ways(key, "-0.5", "-0.5");
  refused(kGood + "step_size = -1\n", {"method.step_size", "line 8"});
  refused(kProblem + "[run]\nstep_size = {schedule = \"constant\", value = -2.0}\n" + kMethod,
          {"run.step_size.value", "line 5"});
  refused(kProblem + "[run]\nstep_size = {schedule = \"constant\"}\n" + kMethod,
          {"run.step_size", "value", "line 5"});
  refused(kProblem + "[run]\nstep_size = {schedule = \"diminishing\", t0 = 0}\n" + kMethod,
          {"run.step_size.t0", "line 5"});
}

TEST(SpecRefuses, SchedulesThatDoNotExist) {
  refused(kProblem + "[run]\nstep_size = {schedule = \"falling\"}\n" + kMethod,
          {"run.step_size.schedule", "line 5", "diminishing"});
  refused(kProblem + "[run]\nstep_size = {schedule = \"diminishing\", per = \"all\"}\n" + kMethod,
          {"run.step_size.per", "line 5", "agent"});
  refused(kProblem + "[run]\nstep_size = {schedule = 5, value = 0.1}\n" + kMethod,
          {"run.step_size.schedule"});
  refused(kProblem + "[run]\nstep_size = {schedule = \"log-constant\", per = 3}\n" + kMethod,
          {"run.step_size.per"});
}

TEST(SpecRefuses, NoMethodOrTwoOfOneName) {
  refused(kProblem + kRun, {"[[method]]"});
  refused("method = []\n" + kProblem + kRun, {"method"});
  refused(kGood + kMethod, {"'affpcl'", "line 8"});
  refused(kGood + "name = \"x\"\n[[method]]\nkind = \"independent\"\nname = \"x\"\n", {"'x'"});
}

TEST(SpecRefuses, MalformedFilesWithTheirLine) {
  refused("[problem]\nkind = \"gaussian\"\nagents = = 3\n", {"line 3"});
  refused("[problem]\nkind = gaussian\n", {"line 2"});
  refused("[problem\n", {"line 1"});
  refused(kProblem + "agents = 5\n", {"line 4"});  // twice
  refused("\x01\x02", {"line 1"});
  refused("", {"[problem]"});
}

TEST(SpecRefuses, FilesThatAreNotThere) {
  try {
    read_study_file("/nowhere/spec.toml");
    FAIL();
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("/nowhere/spec.toml"), std::string::npos);
  }
  EXPECT_THROW(read_study_file(::testing::TempDir()), BadInput);  // a folder
}

TEST(SpecReader, ReadsFiles) {
  const std::string path =
      ::testing::TempDir() + "affpcl_spec_" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << kGood;
  const Study s = read_study_file(path, Overrides{"run.seed=8"});
  std::remove(path.c_str());
  EXPECT_EQ(s.name, path);
  EXPECT_EQ(s.settings.front().spec.run.seed, 8u);
}

// A spec can be run from any folder; what is typed at the command line is relative to where it is
// typed.
TEST(SpecReader, FilesAreRelativeToTheSpec) {
  const std::string text =
      "[problem]\nkind = \"rows\"\nfile = \"data/x.csv\"\ntarget = \"y\"\n" + kMethod;
  const auto file = [](const Study& s) { return s.settings.front().spec.problem.text("file"); };
  EXPECT_EQ(file(read_study(text, "/specs/a.toml")), "/specs/data/x.csv");
  EXPECT_EQ(file(read_study(text, "/specs/sub/../a.toml")), "/specs/data/x.csv");
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(file(read_study(text, "a.toml")), here + "/data/x.csv");
  EXPECT_EQ(file(read_study(text, "sub/a.toml")), here + "/sub/data/x.csv");
  EXPECT_EQ(file(read_study(text, "/specs/a.toml", Overrides{"problem.file=other.csv"})),
            here + "/other.csv");
  EXPECT_EQ(file(read_study(text, "/specs/a.toml", Overrides{"problem.file=/other.csv"})),
            "/other.csv");
  const Study s = read_study(text, "/specs/a.toml");
  EXPECT_EQ(s.settings.front().spec.problem.text("weights"), "");  // none is none
  EXPECT_EQ(s.settings.front().spec.problem.text("target"), "y");  // not a file
}

TEST(SpecReader, TheTablesDescribeEveryKeyOnce) {
  for (const std::span<const Param> table : {run_params(), method_params()}) {
    std::set<std::string_view> names;
    for (const Param& p : table) {
      EXPECT_TRUE(names.insert(p.name).second);
      EXPECT_FALSE(p.doc.empty()) << p.name;
      EXPECT_NO_THROW(Values(table, {{std::string(p.name), p.fallback}}, "x")) << p.name;
    }
  }
}

}  // namespace
}  // namespace affpcl
