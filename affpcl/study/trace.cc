#include "affpcl/study/trace.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"

namespace affpcl {

Trace::Trace(const Study& study, std::string path) : path_(std::move(path)) {
  if (study.settings.size() != 1)
    throw BadInput(
        fmt::format("a trace is of one setting, but the sweep has {}", study.settings.size()));
  refuse_unwritable(path_);
  const Spec& spec = study.settings.front().spec;
  for (const MethodSpec& m : spec.methods) methods_.push_back(m.name);
  for (std::int64_t r = 0; r < spec.replicates; ++r)
    lines_[static_cast<std::uint32_t>(spec.first + r)];
  double rows =
      static_cast<double>(spec.run.steps) *
      static_cast<double>(spec.replicates * static_cast<std::int64_t>(spec.methods.size()));
  for (const char* key : {"agents", "dim"})
    if (const auto it = spec.problem.all().find(key); it != spec.problem.all().end())
      rows *= static_cast<double>(std::get<std::int64_t>(it->second));
  if (rows > 2e7)
    throw BadInput(
        fmt::format("a trace of this run would have {:.2g} rows; the most is 2e7", rows));
}

void Trace::follow(Run& run, std::uint32_t replicate, std::int64_t agents) {
  std::string& out = lines_.at(replicate);
  run.watch([this, &run, &out, replicate, agents](std::size_t m, std::int64_t step) {
    const auto row = [&](const char* what, const std::string& agent, int index, double value) {
      out += fmt::format("{},{},{},{},{},{},{:.17g}\n", csv_field(methods_[m]), replicate, step,
                         what, agent, index, value);
    };
    for (std::int64_t i = 0; i < agents; ++i)
      for (int r = 0; r < run.dimension(); ++r)
        row("x", std::to_string(i), r, run.solution(m, i, r));
    const In xc = run.central_x(m), thetac = run.central_theta(m);
    for (int r = 0; r < xc.rows; ++r) row("xc", "", r, xc.p[r]);
    for (int r = 0; r < thetac.rows; ++r) row("thetac", "", r, thetac.p[r]);
  });
}

void Trace::write() const {
  std::string text = "method,replicate,step,what,agent,index,value\n";
  for (const auto& [replicate, lines] : lines_) text += lines;
  write_file(path_, text);
}

}  // namespace affpcl
