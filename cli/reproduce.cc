#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/study/claims.h"
#include "affpcl/study/results.h"
#include "affpcl/study/studies.h"
#include "affpcl/study/study.h"
#include "cli/processes.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

void print_studies() {
  for (const EmbeddedStudy& s : embedded_studies())
    fmt::print("  {:<18} {}\n", s.name, read_study(std::string(s.spec), std::string(s.name)).title);
}

bool needs_data(const EmbeddedStudy& study) {
  return read_study(std::string(study.spec), std::string(study.name))
             .settings.front()
             .spec.problem_kind == "rows";
}

// A study of recorded rows finds its files in the folder that the user names: below it by the path
// in the spec, which names the data set, or directly in it.
std::vector<std::string> with_data(std::vector<std::string> overrides, const EmbeddedStudy& study,
                                   const std::string& folder) {
  if (!needs_data(study)) return overrides;
  if (folder.empty())
    throw BadInput(fmt::format(
        "{} needs --data DIR, a folder with features.npy and labels.csv (make features)",
        study.name));
  const Study plain = read_study(std::string(study.spec), std::string(study.name));
  for (const char* key : {"file", "with"}) {
    const std::filesystem::path whole = plain.settings.front().spec.problem.text(key),
                                below = folder /
                                        whole.lexically_relative(std::filesystem::current_path()),
                                path = std::filesystem::exists(below) ? below
                                                                      : folder / whole.filename();
    overrides.insert(overrides.begin(), fmt::format("problem.{}={}", key, path.string()));
  }
  return overrides;
}

std::string verdicts_text(const std::vector<Verdict>& verdicts) {
  std::string out;
  for (const Verdict& v : verdicts)
    out += fmt::format("  {}  {}: {:.3g}, expected {:.3g} to {:.3g}\n",
                       v.holds ? "holds  " : "DIFFERS", v.says, v.measured, v.lo, v.hi);
  return out;
}

}  // namespace

Verb reproduce_verb(CLI::App& app, const std::string& command_line) {
  struct Options : CommonOptions {
    std::vector<std::string> names;
    std::string data;
  };
  auto o = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("reproduce", "the paper's figures and theorems, with what was expected");
  verb->add_option("names", o->names, "which studies; 'all' for all; none lists them")
      ->type_name("NAME…");
  verb->add_option("--data", o->data,
                   "folder of the features that the fig-real studies need; without it `all` leaves them out")
      ->type_name("DIR");
  add_common(*verb, *o, "folder for the results; several studies get one folder each below it");
  add_report(*verb, o->report);
  add_long_work(*verb, *o);
  verb->footer("Examples:\n  affpcl reproduce fig-comparison --out result\n  affpcl reproduce all");
  return {verb,
          [o, command_line] {
            if (o->names.empty()) {
              print_studies();
              return int{kOk};
            }
            if (o->report) refuse_report_without(o->out);
            const bool first = processes(o->mpi).first();
            std::vector<const EmbeddedStudy*> chosen;
            for (const std::string& name : o->names) {
              if (name != "all") {
                chosen.push_back(&embedded_study(name));
                continue;
              }
              for (const EmbeddedStudy& s : embedded_studies())
                if (!o->data.empty() || !needs_data(s)) chosen.push_back(&s);
            }
            for (std::size_t i = 0; i < chosen.size(); ++i)  // each once
              chosen.erase(std::remove(chosen.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                       chosen.end(), chosen[i]),
                           chosen.end());
            // Everything that can be refused is refused before the work.
            std::vector<Study> studies;
            std::vector<std::string> paths;
            std::vector<std::unique_ptr<ResultFolder>> folders;
            for (const EmbeddedStudy* s : chosen) {
              studies.push_back(read_study(std::string(s->spec), std::string(s->name),
                                           with_data(o->overrides(), *s, o->data)));
              paths.push_back(chosen.size() == 1 ? o->out : o->out + "/" + std::string(s->name));
              if (!o->out.empty() && first)
                folders.push_back(std::make_unique<ResultFolder>(paths.back(), o->force));
            }

            Json all = Json::object();
            for (std::size_t i = 0; i < studies.size(); ++i) {
              CommonOptions own = *o;
              if (!o->checkpoint.empty() && studies.size() > 1)
                own.checkpoint = o->checkpoint + "/" + studies[i].name;
              const StudyResult result = run_with_progress(studies[i], own);
              if (!first) {
                if (!result.complete) return int{kInterrupted};
                continue;
              }
              const std::vector<Verdict> verdicts =
                  result.complete ? judge(std::string(chosen[i]->claims), studies[i].name, result)
                                  : std::vector<Verdict>{};
              if (!o->out.empty()) {
                folders[i]->add("claims.json", claims_json(verdicts));
                write_results(*folders[i], studies[i], result, command_line);
              }
              const std::string page = o->report ? write_report(paths[i]) : "";
              if (o->json) {
                Json one = parse_json(summary_json(studies[i], result, command_line));
                one["claims"] = parse_json(claims_json(verdicts));
                all[studies[i].name] = std::move(one);
              } else if (!o->quiet) {
                fmt::print("{}{}: {}\n", i > 0 ? "\n" : "", studies[i].name, studies[i].title);
                std::fputs(results_table(result, output_style()).c_str(), stdout);
                std::fputs(verdicts_text(verdicts).c_str(), stdout);
                fmt::print("{:.2f} s\n", result.seconds);
                if (o->report) fmt::print("page in {}\n", page);
                std::fflush(stdout);
              }
              if (!result.complete) {
                if (o->json) fmt::print("{}\n", print_json(all, {.indent = 1}));
                return int{kInterrupted};
              }
            }
            if (!first) return int{kOk};
            if (o->json)
              fmt::print("{}\n", print_json(chosen.size() == 1 ? all.members()[0].value : all,
                                            {.indent = 1}));
            if (!o->json && !o->quiet && !o->out.empty()) fmt::print("results in {}\n", o->out);
            return int{kOk};
          },
          true};
}

}  // namespace affpcl::cli
