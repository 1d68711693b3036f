#include "affpcl/output/page.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace fs = std::filesystem;

void add_report(Verb& verb, bool& report) {
  verb.flag("--report", &report, "also write the page DIR/report.html (needs --out)");
}

void refuse_report_without(const std::string& out) {
  if (out.empty())
    throw BadInput("--report needs --out DIR: the page is written to DIR/report.html");
  if (page_template().empty()) report_page({});  // says why
}

std::string write_report(const std::string& folder) {
  const std::string page = (fs::path(folder) / "report.html").string();
  write_file(page, report_page({&folder, 1}));
  return page;
}

namespace {

struct Options {
  std::vector<std::string> folders;
  std::string out;
  bool force = false, quiet = false;
};

int report(const Options& o) {
  const std::string content = report_page(o.folders);
  const std::string path =
      !o.out.empty() ? o.out : (fs::path(o.folders.back()) / "report.html").string();
  if (fs::exists(path) && !o.force)
    throw BadInput(
        fmt::format("{} exists already; choose another --out, or replace it with --force", path));
  refuse_unwritable(path);
  write_file(path, content);
  if (!o.quiet) fmt::print("page in {}\n", path);
  return kOk;
}

}  // namespace

Verb report_verb() {
  auto o = std::make_shared<Options>();
  Verb verb{.name = "report",
            .doc = "one page to look at: a result folder, or two of them compared",
            .examples =
                "Examples:\n  affpcl report result\n"
                "  affpcl report before after --out changes.html",
            .action = [o](const Verb&) { return report(*o); }};
  verb.option("folders", &o->folders, "DIR",
              "folder that run, reproduce, fit or affinity wrote; or two",
              {.required = true, .most = 2});
  verb.option("--out", &o->out, "PAGE.html", "the page (default: report.html in the last folder)");
  verb.flag("--force", &o->force, "replace the page if it exists");
  verb.flag("--quiet", &o->quiet, "do not print where the page is");
  return verb;
}

}  // namespace affpcl::cli
