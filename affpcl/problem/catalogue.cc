#include "affpcl/problem/catalogue.h"

#include <fmt/format.h>

#include "affpcl/base/error.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

constexpr double kMostAgents = 4e9;  // an agent's number is one 32-bit word of its random stream

ProblemKind gaussian_kind() {
  const Gaussian::Config c;
  return {
      "gaussian",
      "the paper's synthetic system: Gaussian environments, multiplicative noise, closed-form "
      "truth",
      {
          {.name = "agents",
           .doc = "number of agents n",
           .fallback = c.agents,
           .lo = 1,
           .hi = kMostAgents},
          {.name = "dim",
           .doc = "unknowns per agent d",
           .fallback = std::int64_t{c.dim},
           .lo = 1,
           .hi = 10000},
          {.name = "delta_env",
           .doc = "knob of environment heterogeneity: means of length delta_env * spread",
           .fallback = c.delta_env,
           .lo = 0,
           .hi = 100},
          {.name = "delta_obj",
           .doc = "knob of objective heterogeneity: theta^i at distance delta_obj from theta_base",
           .fallback = c.delta_obj,
           .lo = 0,
           .hi = 1e6},
          {.name = "eps_A", .doc = "noise of A(s)", .fallback = c.eps_A, .lo = 0, .hi = 1e6},
          {.name = "eps_b", .doc = "noise of Phi(s)", .fallback = c.eps_b, .lo = 0, .hi = 1e6},
          {.name = "spread", .doc = "the paper's C_A", .fallback = c.spread, .lo = 0, .hi = 1e6},
          {.name = "theta_length",
           .doc = "length of theta_base; 0 leaves it as drawn",
           .fallback = c.theta_length,
           .lo = 0,
           .hi = 1e6},
          {.name = "ridge",
           .doc = "added to the diagonal of A_base and Phi_base; -1: dim",
           .fallback = c.ridge,
           .lo = -1,
           .hi = 1e6},
          {.name = "environments",
           .doc = "distinct environments; 0: one per agent",
           .fallback = c.environments,
           .lo = 0,
           .hi = kMostAgents},
          {.name = "first_central",
           .doc = "the first agent sits at the centre",
           .fallback = c.first_central},
      },
      [](const Values& v, std::uint64_t seed, std::uint32_t replicate) {
        const Gaussian::Config config{.agents = v.integer("agents"),
                                      .dim = static_cast<int>(v.integer("dim")),
                                      .delta_env = v.number("delta_env"),
                                      .delta_obj = v.number("delta_obj"),
                                      .eps_A = v.number("eps_A"),
                                      .eps_b = v.number("eps_b"),
                                      .spread = v.number("spread"),
                                      .theta_length = v.number("theta_length"),
                                      .ridge = v.number("ridge"),
                                      .environments = v.integer("environments"),
                                      .first_central = v.flag("first_central")};
        return std::make_unique<Gaussian>(config, seed, replicate);
      }};
}

// What a choice of system or family leaves unread or cannot have.
void refuse_contradictions(const Values& v, const std::vector<Param>& params) {
  const bool law = v.text("system") == "law", two_point = v.text("family") == "two_point";
  if (law && v.text("family") == "free_ride")
    throw BadInput("problem.system = \"law\" does not go with problem.family = \"free_ride\"");
  for (const Param& p : params) {
    const Value& value = v.all().find(p.name)->second;
    const bool unread = (law && (p.name == "dim" || p.name == "angle" || p.name == "noise_A" ||
                                 p.name == "noise_Phi")) ||
                        (two_point && p.name == "sparsity");
    if (unread && value != p.fallback)
      throw BadInput(
          fmt::format("problem.{} = {} means nothing with problem.{}", p.name, to_text(value),
                      law && p.name != "sparsity" ? "system = \"law\"" : "family = \"two_point\""));
  }
  if (two_point && v.integer("states") % 2 != 0)
    throw BadInput(fmt::format("problem.states = {} is odd, but family = \"two_point\" pairs them",
                               v.integer("states")));
  if (two_point && v.number("delta_env") > 0.5)
    throw BadInput(fmt::format(
        "problem.delta_env = {} is above .5, the most that family = \"two_point\" can have",
        v.number("delta_env")));
}

Tabular::Family family(const std::string& name) {
  if (name == "exchange") return Tabular::Family::kExchange;
  if (name == "free_ride") return Tabular::Family::kFreeRide;
  return name == "two_point" ? Tabular::Family::kTwoPoint : Tabular::Family::kMixture;
}

ProblemKind tabular_kind() {
  const Tabular::Config c;
  return {
      "tabular",
      "a finite system, generated or read from JSON; every expectation is a finite sum",
      {
          {.name = "file",
           .doc = "system.json to read instead of generating; then only coe counts",
           .fallback = ""},
          {.name = "family",
           .doc = "mixture: laws and objectives around a base; exchange: pairs of agents that "
                  "differ from mu^0 in few states (apx:dre); free_ride: all apart, the first at "
                  "the centre (sec:asa); two_point: the hard pair of apx:lower, the first against "
                  "the rest",
           .fallback = "mixture",
           .choices = {"mixture", "exchange", "free_ride", "two_point"}},
          {.name = "system",
           .doc = "random: A(s), Phi(s) around the identity; law: A = I, b = e_s theta, so that x "
                  "is the environment mu itself and dim the number of states",
           .fallback = "random",
           .choices = {"random", "law"}},
          {.name = "agents",
           .doc = "number of agents n",
           .fallback = c.agents,
           .lo = 1,
           .hi = kMostAgents},
          {.name = "dim",
           .doc = "unknowns per agent d",
           .fallback = std::int64_t{c.dim},
           .lo = 1,
           .hi = 1000},
          {.name = "states",
           .doc = "number of states",
           .fallback = std::int64_t{c.states},
           .lo = 1,
           .hi = 100000},
          {.name = "delta_env",
           .doc = "share of an agent's own law in mu^i",
           .fallback = c.delta_env,
           .lo = 0,
           .hi = 1},
          {.name = "delta_obj",
           .doc = "distance of theta^i from theta_base",
           .fallback = c.delta_obj,
           .lo = 0,
           .hi = 1e6},
          {.name = "noise_A",
           .doc = "noise of A(s) around the identity",
           .fallback = c.noise_A,
           .lo = 0,
           .hi = 0.99},
          {.name = "angle",
           .doc =
               "degrees by which A(s) turns, one way or the other: nu is about 1/cos (apx:noise)",
           .fallback = c.angle,
           .lo = 0,
           .hi = 89},
          {.name = "noise_Phi",
           .doc = "noise of Phi(s) around the identity",
           .fallback = c.noise_Phi,
           .lo = 0,
           .hi = 0.99},
          {.name = "sparsity",
           .doc = "share of states on which an agent may differ",
           .fallback = c.sparsity,
           .lo = 0,
           .hi = 1,
           .above = true},
          {.name = "first_central",
           .doc = "the first agent has the base law and objective",
           .fallback = c.first_central},
          {.name = "coe",
           .doc = "central objective's direction: Phi theta - b, or its gradient form",
           .fallback = "auto",
           .choices = {"auto", "residual", "gradient"}},
      },
      [](const Values& v, std::uint64_t seed, std::uint32_t replicate) {
        const Tabular::Coe coe = v.text("coe") == "residual"   ? Tabular::Coe::kResidual
                                 : v.text("coe") == "gradient" ? Tabular::Coe::kGradient
                                                               : Tabular::Coe::kAuto;
        if (!v.text("file").empty())
          return std::make_unique<Tabular>(read_finite_system(v.text("file")), coe);
        refuse_contradictions(v, problem_kind("tabular").params);
        const Tabular::Config config{
            .family = family(v.text("family")),
            .system = v.text("system") == "law" ? Tabular::System::kLaw : Tabular::System::kRandom,
            .agents = v.integer("agents"),
            .dim = static_cast<int>(v.integer("dim")),
            .states = static_cast<int>(v.integer("states")),
            .delta_env = v.number("delta_env"),
            .delta_obj = v.number("delta_obj"),
            .noise_A = v.number("noise_A"),
            .angle = v.number("angle"),
            .noise_Phi = v.number("noise_Phi"),
            .sparsity = v.number("sparsity"),
            .first_central = v.flag("first_central")};
        return std::make_unique<Tabular>(Tabular::generate(config, seed, replicate), coe);
      }};
}

std::vector<ProblemKind>& registry() {
  static std::vector<ProblemKind> kKinds = {gaussian_kind(), tabular_kind()};
  return kKinds;
}

}  // namespace

const std::vector<ProblemKind>& problem_kinds() { return registry(); }

const ProblemKind& problem_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ProblemKind& kind : registry()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw BadInput(fmt::format("problem.kind = \"{}\" is not known{}", name, hint(name, names)));
}

void add_problem_kind(ProblemKind kind) { registry().push_back(std::move(kind)); }

}  // namespace affpcl
