#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/math/kernels.h"
#include "bench/rounds.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

using bench::Limits;
using bench::RoundCase;

struct Options {
  std::vector<std::string> cases = {"20,5",
                                    "100,20",
                                    "1000,20",
                                    "1000,84",
                                    "4000,20",
                                    "1000,20,exact,f32",
                                    "4000,20,exact,f32",
                                    "10000,20,linear"};
  double seconds = 0.5;
  int threads = 1;
  bool json = false;
};

// "AGENTS,DIM[,RATIO[,PRECISION]]"
RoundCase read_case(const std::string& text, int threads) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  const auto number = [&](const std::string& part) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value < 1 || value > 10'000'000)
      throw BadInput(fmt::format("--case {}: '{}' is not a number from 1 to 10000000", text, part));
    return value;
  };
  const auto one_of = [&](std::size_t k, const char* first, const char* second) {
    if (parts.size() <= k) return std::string(first);
    if (parts[k] != first && parts[k] != second)
      throw BadInput(
          fmt::format("--case {}: '{}' is neither {} nor {}", text, parts[k], first, second));
    return parts[k];
  };
  if (parts.size() < 2 || parts.size() > 4)
    throw BadInput(fmt::format(
        "--case {}: AGENTS,DIM[,exact|linear[,f64|f32]] is meant, as in 1000,20", text));
  return {.agents = number(parts[0]),
          .dim = static_cast<int>(number(parts[1])),
          .ratio = one_of(2, "exact", "linear"),
          .precision = one_of(3, "f64", "f32"),
          .threads = threads};
}

Json as_json(const Limits& l) {
  return {{"fma_f64", l.fma64}, {"fma_f32", l.fma32},   {"exp_f64", l.exp64},
          {"exp_f32", l.exp32}, {"normals", l.normals}, {"bandwidth", l.bandwidth}};
}

void print_limits(const Limits& l) {
  fmt::print(
      "limits of one core ({}): {:.1f} Gflop/s, f32 {:.1f}; {:.2f} Gexp/s, f32 {:.2f}; {:.0f} M "
      "normals/s; copying {:.1f} GB/s\n",
      instruction_set(), l.fma64 / 1e9, l.fma32 / 1e9, l.exp64 / 1e9, l.exp32 / 1e9,
      l.normals / 1e6, l.bandwidth / 1e9);
}

int measure(const Options& o) {
  std::vector<RoundCase> cases;
  for (const std::string& text : o.cases) cases.push_back(read_case(text, o.threads));
  Limits limits;  // the best so far: before and after every case, for a machine has its moods
  bench::measure(limits);
  const auto share = [&](const RoundCase& c, const bench::RoundSeconds& seconds) {
    return bench::model_seconds(c, limits) / seconds.least;
  };
  const auto modelled = [](const RoundCase& c) { return c.ratio == "exact" && c.threads == 1; };
  std::vector<bench::RoundSeconds> rounds;
  if (!o.json)
    fmt::print("{:>8} {:>4}  {:<7} {:<9} {:>12} {:>12} {:>12}  share of the limit\n", "agents", "d",
               "ratio", "precision", "us a round", "at best", "rounds/s");
  for (const RoundCase& c : cases) {
    const bench::RoundSeconds seconds = rounds.emplace_back(bench::round_seconds(c, o.seconds));
    bench::measure(limits);
    if (!o.json)
      fmt::print("{:>8} {:>4}  {:<7} {:<9} {:>12.2f} {:>12.2f} {:>12.1f}  {}\n", c.agents, c.dim,
                 c.ratio, c.precision, seconds.median * 1e6, seconds.least * 1e6,
                 1 / seconds.median,
                 modelled(c) ? fmt::format("{:.0f} %", 100 * share(c, seconds)) : "");
  }
  if (!o.json) return print_limits(limits), kOk;
  Json all{{"instruction_set", instruction_set()},
           {"limits", as_json(limits)},
           {"rounds", Json::array()}};
  for (std::size_t i = 0; i < cases.size(); ++i)
    all["rounds"].push_back(
        {{"agents", cases[i].agents},
         {"dim", cases[i].dim},
         {"ratio", cases[i].ratio},
         {"precision", cases[i].precision},
         {"threads", cases[i].threads},
         {"seconds", rounds[i].median},
         {"least_seconds", rounds[i].least},
         {"share_of_limit", modelled(cases[i]) ? Json(share(cases[i], rounds[i])) : Json()}});
  fmt::print("{}\n", print_json(all, {.indent = 1}));
  return kOk;
}

}  // namespace

Verb bench_verb() {
  auto o = std::make_shared<Options>();
  Verb verb{.name = "bench",
            .doc = "speed on this machine: rounds of AffPCL against its limits",
            .examples = "Example:\n  affpcl bench --case 1000,20 --case 1000,20,exact,f32",
            .action = [o](const Verb&) { return measure(*o); }};
  verb.option("--case", &o->cases, "AGENTS,DIM[,RATIO[,PRECISION]]",
              "a round to time, instead of the usual ones; may be repeated");
  verb.option("--seconds", &o->seconds, "S", "how long each is timed", {.lo = 0.001, .hi = 3600});
  verb.option("--threads", &o->threads, "N", "threads to use (default: 1)", {.lo = 1, .hi = 4096});
  verb.flag("--json", &o->json, "print JSON and nothing else");
  return verb;
}

}  // namespace affpcl::cli
