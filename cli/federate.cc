// A federation from one file: every site's rows stay in its own process, and sums alone leave it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/base/join.h"
#include "affpcl/base/json.h"
#include "cli/federate_flare.h"
#include "cli/federate_local.h"
#include "cli/federate_run.h"
#include "cli/job_file.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {
namespace fs = std::filesystem;

struct Options {
  std::string job, out;
  bool force = false, resume = false, quiet = false, json = false, report = false;
};

// A folder for results that are only shown; removed at the end.
class ShownOnly {
 public:
  ShownOnly() : path_((fs::temp_directory_path() / "affpcl-federation-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw Failure(fmt::format("{}: cannot be made", path_));
  }
  ~ShownOnly() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ShownOnly(const ShownOnly&) = delete;
  ShownOnly& operator=(const ShownOnly&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string journal_of(const std::string& folder) {
  return (fs::path(folder) / "journal").string();
}

// What sites keep beside their folders for the next attempt: NAME.JOB.sent, NAME.JOB.release.
std::vector<fs::path> kept_by_sites(const fs::path& folder, std::string_view what) {
  std::vector<fs::path> found;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == what) found.push_back(entry.path());
  return found;
}

// In production the journal is at the server.
void refuse_folder(const Options& o, bool production) {
  const fs::path folder = o.out;
  const bool there = fs::exists(folder) && !(fs::is_directory(folder) && fs::is_empty(folder));
  const bool done = fs::exists(folder / "centre"),
             logged =
                 fs::exists(folder / "flare.log") || !kept_by_sites(folder, ".release").empty();
  const bool interrupted = fs::exists(journal_of(o.out)) || (production && logged && !done);
  if (o.resume && !interrupted)
    throw BadInput(fmt::format("--resume: there is no interrupted job in {}", o.out));
  if (there && !o.force && !o.resume)
    throw BadInput(
        fmt::format("{} exists already{}; choose another --out, or replace it with --force", o.out,
                    interrupted ? "; --resume goes on with the interrupted job in it" : ""));
  if (there && !interrupted && !done && !logged)
    throw BadInput(fmt::format(
        "{} exists and is not the result of a federation; --force replaces only such", o.out));
  if (!o.resume) fs::remove(journal_of(o.out));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw BadInput(fmt::format("{} cannot be made: {}", o.out, error.message()));
}

Json read_json(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  if (!in || !(text << in.rdbuf())) throw Failure(fmt::format("{} is missing", path.string()));
  return parse_json(text.str());
}

// The loss of a site's own agents on held-out rows.
double mean_loss(const Json::Array& agents, std::string_view of) {
  double sum = 0, rows = 0;
  for (const Json& agent : agents) {
    const Json* score = agent.find("score");
    if (score == nullptr || !score->is_object() || !score->at(of).is_number()) continue;
    sum += agent.get<double>("rows") * score->get<double>(of);
    rows += agent.get<double>("rows");
  }
  return rows > 0 ? sum / rows : std::numeric_limits<double>::quiet_NaN();
}

constexpr const char* kModels[] = {"given", "alone", "pooled"};  // as summary.json calls them

// What every site found out; its models stay in its folder.
Json summary(const JobFile& job, const Federated& done, const std::string& out) {
  Json sites = Json::array(), all = nullptr, privacy = nullptr;
  for (const std::string& name : done.sites) {
    const Json own = read_json(fs::path(out) / name / "summary.json");
    const Json::Array& agents = own["agents"].elements();
    if (own.contains("privacy")) privacy = own["privacy"];
    std::int64_t rows = 0;
    for (const Json& agent : agents) rows += agent.get<std::int64_t>("rows");
    Json site{{"site", name},
              {"agents", agents.size()},
              {"rows", rows},
              {"bytes_sent", own["manifest"]["communication"].get<std::int64_t>("bytes_sent")},
              {"notes", own["notes"]}};
    if (const Json* score = own.find("score"); score != nullptr && score->is_object()) {
      all = *score;  // over the agents of all sites, the same at each
      for (const char* model : kModels) site[model] = mean_loss(agents, model);
      site["verdicts"] = own["verdicts"];
    }
    sites.push_back(std::move(site));
  }
  return Json{{"job", job.name},         {"engine", name_of(job.engine)},
              {"secure", job.secure},    {"rounds", done.rounds},
              {"seconds", done.seconds}, {"privacy", std::move(privacy)},
              {"score", std::move(all)}, {"sites", std::move(sites)}};
}

// What fitting had to say, once where all sites say the same.
void print_notes(const Json& sites) {
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;
  for (const Json& site : sites.elements())
    for (const Json& note : site["notes"].elements()) {
      const std::string& text = note.string();
      auto at =
          std::find_if(notes.begin(), notes.end(), [&](const auto& n) { return n.first == text; });
      if (at == notes.end()) at = notes.insert(at, {text, {}});
      at->second.push_back(site.get<std::string>("site"));
    }
  for (const auto& [text, of] : notes)
    fmt::print("  note{}: {}\n", of.size() == sites.size() ? "" : " of " + join(of, ", "),
               spell_options(text, OptionStyle::kCommandLine));
}

void print_scores(const Json& result, std::size_t width) {
  const Json& all = result["score"];
  const auto measure = all.get<std::string>("measure");
  fmt::print(
      "  {:<{}}  agents  rows      chosen  independent      pooled        gain  gained  even  lost "
      " MB sent\n",
      "site", width);
  for (const Json& site : result["sites"].elements()) {
    const std::string name = site.get<std::string>("site");
    const Json& verdicts = site["verdicts"];
    fmt::print(
        "  {}{}  {:>6}  {:>4}  {:>10.4g}  {:>11.4g}  {:>10.4g}  {:>10.3g}  {:>6}  {:>4}  {:>4}  "
        "{:>7.2f}\n",
        name, std::string(width - places(name), ' '), site.get<std::int64_t>("agents"),
        site.get<std::int64_t>("rows"), site.get<double>("given"), site.get<double>("alone"),
        site.get<double>("pooled"), site.get<double>("alone") - site.get<double>("given"),
        verdicts.get<std::int64_t>("gained"), verdicts.get<std::int64_t>("even"),
        verdicts.get<std::int64_t>("lost"), site.get<double>("bytes_sent") / 1e6);
  }
  const Json& loss = all[measure];
  const auto alone = loss.get<double>("alone"), given = loss.get<double>("given");
  const std::string name = measure == "mse"        ? "mean squared error"
                           : measure == "log_loss" ? "log loss"
                                                   : measure;
  std::fputs(
      headline_text(
          fmt::format("learning together took the {} on held-out rows of all sites from {:.4g} "
                      "to {:.4g} ({:.1f} % {})",
                      name, alone, given, 100 * std::abs(1 - given / alone),
                      given <= alone ? "less" : "more"),
          output_style())
          .c_str(),
      stdout);
}

void print_folder(const Json& result, const Options& o, const char* what) {
  if (o.out.empty())
    fmt::print("--out DIR keeps every site's own {}, and the ledger of what it sent\n", what);
  else
    fmt::print("each site's own {2} in {0}/{1} and so on; what all have in common in {0}/centre\n",
               o.out, result["sites"][0].get<std::string>("site"), what);
}

void print(const Json& result, const Options& o) {
  fmt::print("{} sites, {} sums{}, {:.1f} s, engine {}\n", result["sites"].size(),
             result.get<std::int64_t>("rounds"),
             result.get<bool>("secure") ? ", masked: the centre can read no single site's part"
                                        : " without masks: the centre can read every site's part",
             result.get<double>("seconds"), result.get<std::string>("engine"));
  if (result.contains("task")) {
    print_study(result);
    print_folder(result, o, "results");
    return;
  }
  print_notes(result["sites"]);
  std::size_t width = 4;
  for (const Json& site : result["sites"].elements())
    width = std::max(width, places(site.get<std::string>("site")));
  if (result["score"].is_null())
    fmt::print("not scored\n");
  else
    print_scores(result, width);
  print_folder(result, o, "models");
}

int federate(Options o) {
  const JobFile job = read_job(o.job);
  if (o.force && o.resume) throw BadInput("--force starts again, and --resume goes on: choose one");
  if (o.out.empty() && (o.resume || o.report))
    throw BadInput(fmt::format("{} needs --out DIR", o.resume ? "--resume" : "--report"));
  if (job.engine == Engine::kProduction && o.out.empty())
    throw BadInput("engine = \"production\" needs --out DIR, for centre.json");
  if (o.report) refuse_report_without(o.out);
  std::unique_ptr<ShownOnly> shown;
  if (o.out.empty())
    shown = std::make_unique<ShownOnly>();
  else
    refuse_folder(o, job.engine == Engine::kProduction);
  const std::string out = shown ? shown->path() : o.out;
  interruption();
  std::unique_ptr<ProgressLine> line = std::make_unique<ProgressLine>(o.quiet || o.json);
  const FederateOptions options{
      .out = fs::absolute(out).lexically_normal().string(),
      .journal = fs::absolute(journal_of(out)).lexically_normal().string(),
      .report = o.report,
      .progress = [&](double share) { (*line)(share); },
      .note = [](const std::string& text) { fmt::print(stderr, "affpcl: note: {}\n", text); }};
  Federated done;
  try {
    done =
        job.engine == Engine::kLocal ? federate_local(job, options) : federate_flare(job, options);
  } catch (const BadInput&) {  // what is new would not go on either; what was there stays
    line.reset();
    if (!o.resume) {
      fs::remove(options.journal);
      for (const fs::path& sent : kept_by_sites(out, ".sent")) fs::remove(sent);
      if (fs::is_empty(out)) fs::remove(out);
    }
    throw;
  } catch (const std::exception&) {
    line.reset();
    if (!shown && fs::exists(options.journal))
      fmt::print(stderr, "affpcl: stopped; the same command with --resume goes on from {}\n",
                 options.journal);
    throw;
  }
  line.reset();
  fs::remove(options.journal);
  if (job.engine == Engine::kProduction) {
    if (!o.quiet)
      fmt::print("what all sites have in common in {}/centre; each site has its own models\n",
                 o.out);
    return kOk;
  }
  const bool study = job.task == "run";
  const Json result = study ? study_summary(job, done, out) : summary(job, done, out);
  if (o.json)
    fmt::print("{}\n", print_json(result, {.indent = 2}));
  else if (!o.quiet)
    print(result, o);
  return kOk;
}

}  // namespace

Verb federate_verb() {
  auto o = std::make_shared<Options>();
  Verb verb{.name = "federate",
            .doc =
                "one model per agent over several sites, or a study of methods: rows stay where "
                "they are, and masked sums leave a site",
            .examples =
                "Examples:\n  affpcl federate examples/federation/job.toml\n"
                "  affpcl federate job.toml --out result --report\n"
                "The job: [job] sites, engine, min_sites, secure; [fit] the options of `affpcl "
                "fit`; [site.NAME] data.\n"
                "task = \"run\": in place of [fit] the spec of `affpcl run` on problem.kind = "
                "\"rows\", or spec = \"study.toml\".\n"
                "engine = \"local\" runs every site as a process of this machine; sim, poc and "
                "production run\n"
                "over NVIDIA FLARE (pip install 'affpcl[flare]'). docs/federation.md sets up three "
                "organisations.",
            .action = [o](const Verb&) { return federate(*o); }};
  verb.option("job", &o->job, "JOB.toml", "what the sites do together, and where each has its rows",
              {.required = true});
  verb.option("--out", &o->out, "DIR",
              "a folder with one folder for every site, and `centre` for what all have in common");
  verb.flag("--force", &o->force, "replace the folder if it exists");
  verb.flag("--resume", &o->resume, "go on with the interrupted job in the folder");
  verb.flag("--report", &o->report, "also write every site's page, DIR/SITE/report.html");
  verb.flag("--json", &o->json, "print what every site gained as JSON and nothing else");
  verb.flag("--quiet", &o->quiet, "no table, no progress");
  return verb;
}

}  // namespace affpcl::cli
