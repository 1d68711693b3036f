// affpcl: personalised collaborative learning from the command line.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/math/kernels.h"
#include "affpcl/version.h"
#include "cli/processes.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace {

std::string command_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool plain =
        !arg.empty() && arg.find_first_of(" \t\"'$\\*?[]{}()<>|&;#`~!") == std::string::npos;
    std::string quoted = "'";
    for (char c : arg) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    line += (i == 0 ? "" : " ") + (plain ? arg : quoted + "'");
  }
  return line;
}

// AFFPCL_INSTRUCTION_SET=AVX2 gives the bits of a machine that has no more than that.
void use_set_asked_for() {
  const char* name = std::getenv("AFFPCL_INSTRUCTION_SET");
  if (name == nullptr || *name == '\0') return;
  const std::vector<std::string> known = affpcl::available_instruction_sets();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw affpcl::BadInput(
        fmt::format("AFFPCL_INSTRUCTION_SET = {} is not available on this machine; available: {}",
                    name, affpcl::join(known, ", ")));
  affpcl::use_instruction_set(name);
}

// A descriptor that is closed would be that of the next file that is opened: what is printed would go
// there. Writing to a closed standard output fails instead.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      (void)!open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

// The exit code, once what was printed has been taken.
int finish(int code) {
  errno = 0;
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || code == affpcl::cli::kInterrupted)
    return code;
  return affpcl::cli::fail(
      fmt::format("cannot write to standard output{}",
                  errno != 0 ? fmt::format(": {}", std::strerror(errno)) : std::string()),
      affpcl::cli::kFailed);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace affpcl::cli;
  fill_closed_streams();
  const std::string line = command_line(argc, argv);
  Program program = {
      .doc =
          "affpcl: n agents, each with its own data and goal, learn together; each gets its own "
          "model.",
      .version = affpcl::kVersion,
      .footer =
          "Every verb has --help with an example. Exit codes: 0 ok, 1 failed, 2 bad input, 130 "
          "interrupted.",
      .verbs = {run_verb(line), reproduce_verb(line), affinity_verb(line), fit_verb(line),
                federate_verb(), predict_verb(), inspect_verb(), report_verb(), list_verb(),
                bench_verb()}};
  try {
    const auto [verb, text] = read_command_line(argc, argv, program);
    if (verb != nullptr) use_set_asked_for();
    interruption();  // from here on a signal ends any verb with exit code 130
    const bool first = launched().rank == 0;
    if (verb != nullptr && (first || verb->many_processes)) return finish(verb->action(*verb));
    if (first) std::fputs(text.c_str(), stdout);
    return finish(kOk);
  } catch (const affpcl::Interrupted& e) {
    return fail(e.what(), kInterrupted);
  } catch (const affpcl::BadInput& e) {
    return fail(e.sentence(affpcl::OptionStyle::kCommandLine), kBadInput);
  } catch (const std::bad_alloc&) {
    return fail("there is not enough memory for this run", kFailed);
  } catch (const affpcl::Failure& e) {
    return fail(e.what(), kFailed);
  } catch (const std::exception& e) {
    if (std::ferror(stdout) != 0) return finish(kFailed);
    return fail(fmt::format("internal error ({}); please report it with the command and its files",
                            e.what()),
                kFailed);
  }
}
