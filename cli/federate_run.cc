#include "cli/federate_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "affpcl/output/model_file.h"
#include "cli/terminal.h"

namespace affpcl::cli {
namespace {
namespace fs = std::filesystem;

Json read(const fs::path& path) { return parse_json(content_of(path.string())); }

std::string shown(const Json& value) {
  return value.is_string() ? value.string() : print_json(value);
}

std::string interval(const Json& estimate) {
  if (estimate.is_null()) return "-";  // no rows are held out
  const auto number = [&](std::string_view key) {
    const Json& x = estimate[key];
    return x.is_number() ? fmt::format("{:.4g}", estimate.get<double>(key)) : std::string("-");
  };
  return fmt::format("{} [{}, {}]", number("mean"), number("lo"), number("hi"));
}

}  // namespace

Json study_summary(const JobFile& job, const Federated& done, const std::string& out) {
  const Json centre = read(fs::path(out) / "centre" / "centre.json");
  Json sites = Json::array();
  for (const std::string& name : done.sites) {
    const Json own = read(fs::path(out) / name / "summary.json");
    std::size_t agents = 0;
    for (const Json& setting : own["settings"].elements())
      agents = setting["methods"][0]["agents"].size();
    sites.push_back(
        {{"site", name},
         {"agents", agents},
         {"bytes_sent", own["manifest"]["communication"].get<std::int64_t>("bytes_sent")}});
  }
  return Json{{"job", job.name},
              {"task", job.task},
              {"engine", name_of(job.engine)},
              {"secure", job.secure},
              {"rounds", done.rounds},
              {"seconds", done.seconds},
              {"agents", centre["agents"]},
              {"settings", centre["settings"]},
              {"sites", std::move(sites)}};
}

void print_study(const Json& summary) {
  std::size_t width = 6, wide = 4;
  for (const Json& setting : summary["settings"].elements())
    for (const Json& m : setting["methods"].elements())
      width = std::max(width, places(m.get<std::string>("name")));
  for (const Json& site : summary["sites"].elements())
    wide = std::max(wide, places(site.get<std::string>("site")));
  for (const Json& setting : summary["settings"].elements()) {
    std::string at;
    for (const auto& [key, value] : setting["at"].members())
      at += fmt::format("{}{} = {}", at.empty() ? "" : ", ", key, shown(value));
    if (!at.empty()) fmt::print("{}\n", at);
    fmt::print("  {:<{}}  {:<32}  {}\n", "method", width, "mean squared error", "over independent");
    for (const Json& m : setting["methods"].elements()) {
      const std::string name = m.get<std::string>("name");
      const std::int64_t diverged = setting["diverged"].get<std::int64_t>(name);
      fmt::print("  {}{}  {:<32}  {}{}\n", name, std::string(width - places(name), ' '),
                 interval(m["mse"]), interval(m["vs_independent"]),
                 diverged > 0 ? fmt::format("diverged in {} of {}", diverged,
                                            setting.get<std::int64_t>("replicates"))
                              : "");
    }
  }
  fmt::print("  {:<{}}  agents  MB sent\n", "site", wide);
  for (const Json& site : summary["sites"].elements()) {
    const std::string name = site.get<std::string>("site");
    fmt::print("  {}{}  {:>6}  {:>7.2f}\n", name, std::string(wide - places(name), ' '),
               site.get<std::int64_t>("agents"), site.get<double>("bytes_sent") / 1e6);
  }
}

}  // namespace affpcl::cli
