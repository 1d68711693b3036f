#include "cli/federate_flare.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "cli/child.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {
namespace fs = std::filesystem;

// AFFPCL_PYTHON, the one beside this program (of an installed package), or the first on the PATH.
std::string python() {
  if (const char* named = std::getenv("AFFPCL_PYTHON"); named != nullptr && *named != '\0')
    return named;
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "python3";
  return fs::exists(beside) ? beside.string() : "python3";
}

}  // namespace

// Every line that it prints is a JSON object: progress, a note, an error, or what was done.
Federated federate_flare(const JobFile& job, const FederateOptions& options) {
  Json asked = job.json();
  asked["out"] = options.out;
  asked["journal"] = options.journal;
  asked["report"] = options.report;
  if (::getenv("AFFPCL_PROGRAM") == nullptr)
    ::setenv("AFFPCL_PROGRAM", fs::read_symlink("/proc/self/exe").c_str(), 0);
  const std::string interpreter = python();
  const std::string log = (fs::path(options.out) / "flare.log").string();
  Child child({interpreter, "-m", "affpcl.flare"}, log);
  child.write(print_json(asked) + "\n");
  child.close_input();
  Federated done;
  bool is_done = false, input = false;
  std::string line, error;
  while (child.read_line(line)) {
    Json said;
    try {
      said = parse_json(line);
    } catch (const BadInput&) {
      continue;  // a line of another library
    }
    if (said.contains("progress")) options.progress(said.get<double>("progress"));
    if (said.contains("note")) options.note(said.get<std::string>("note"));
    if (said.contains("error")) {
      error = said.get<std::string>("error");
      input = said.get_or<bool>("input", false);
    }
    if (said.contains("done")) {
      is_done = true;
      done = {.sites = said.get<std::vector<std::string>>("done"),
              .rounds = said.get_or<std::int64_t>("rounds", 0),
              .bytes_received = said.get_or<std::int64_t>("bytes", 0),
              .seconds = said.get_or<double>("seconds", 0)};
    }
  }
  const int code = child.wait();
  if (!error.empty() && input) throw BadInput(error);
  if (!error.empty()) throw Failure(error);
  if (is_done && code == 0) return done;
  const std::string words = child.last_words();
  if (words.find("No module named") != std::string::npos)
    throw BadInput(
        fmt::format("engine = \"{}\" needs the Python package with NVIDIA FLARE: {} -m pip install "
                    "'affpcl[flare]' (AFFPCL_PYTHON may name another Python); engine = \"local\" "
                    "needs neither",
                    name_of(job.engine), interpreter));
  throw Failure(fmt::format("the process of NVIDIA FLARE ended with code {}: {}; its log is {}",
                            code, words, log));
}

}  // namespace affpcl::cli
