#include "affpcl/data/arrow.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/base/python.h"
#include "affpcl/data/inputs.h"

extern char** environ;  // POSIX

namespace affpcl {
namespace {

constexpr int kNoPyarrow = 42, kUnreadable = 43;

constexpr char kScript[] = R"(
import sys
try:
    import pyarrow as pa, pyarrow.csv, pyarrow.feather, pyarrow.parquet
except ImportError:
    sys.exit(42)
try:
    magic = open(sys.argv[1], "rb").read(6)
    if magic.startswith(b"PAR1"):
        table = pa.parquet.read_table(sys.argv[1])
    elif magic.startswith(b"\xff\xff\xff\xff"):
        table = pa.ipc.open_stream(sys.argv[1]).read_all()
    else:
        table = pa.feather.read_table(sys.argv[1])
    for i, field in enumerate(table.schema):
        held = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        as_text = pa.float64() if pa.types.is_floating(held) else held  # 0.1 as float32 is not 0.1
        if as_text != field.type:
            table = table.set_column(i, field.name, table.column(i).cast(held).cast(as_text))
        elif pa.types.is_nested(field.type):
            raise ValueError(f"column '{field.name}' holds {field.type}")
    pa.csv.write_csv(table, sys.stdout.buffer)
except Exception as e:
    print(" ".join(str(e).split())[:200], file=sys.stderr)
    sys.exit(43)
)";

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw Failure("there is no pipe to be had");
  }
  ~Pipe() { close_end(0), close_end(1); }
  void close_end(int k) {
    if (ends[k] >= 0) close(ends[k]);
    ends[k] = -1;
  }
};

std::string all_of(int fd) {
  std::string text(4096, '\0');
  const ssize_t got = ::read(fd, text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// A child that is not waited for stays behind; one whose reader gives up is ended.
class Child {
 public:
  Child(const std::string& program, const std::string& place, Pipe& out, Pipe& err) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err.ends[1], 2);
    std::vector<std::string> words = {program, "-c", kScript, place};
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    started_ = posix_spawnp(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    out.close_end(1), err.close_end(1);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (started_) kill(pid_, SIGKILL), code();
  }
  bool started() const { return started_; }
  int code() {  // of its end
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    started_ = false;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  bool started_ = false;
};

}  // namespace

bool is_arrow(std::string_view opening) {
  using namespace std::string_view_literals;
  const auto begins = [&](std::string_view magic) {  // and goes on as no text does
    return opening.size() > magic.size() && opening.starts_with(magic) &&
           static_cast<unsigned char>(opening[magic.size()]) < ' ' &&
           "\t\n\r"sv.find(opening[magic.size()]) == std::string_view::npos;
  };
  return begins("PAR1") || begins("ARROW1") || begins("FEA1") ||
         opening.starts_with("\xff\xff\xff\xff"sv);
}

void arrow_to_csv(const std::string& path, const std::string& place, WriteBytes write) {
  for (const std::string& python : pythons()) {
    Pipe out, err;
    Child child(python, place, out, err);
    if (!child.started()) continue;
    std::vector<char> block(std::size_t{1} << 16);
    while (const std::size_t got = read_waiting(out.ends[0], block.data(), block.size(), path))
      write(block.data(), got);
    const std::string said = all_of(err.ends[0]);
    const int code = child.code();
    if (code == 0) return;
    if (code == kUnreadable)
      throw BadInput(fmt::format("{} cannot be read by pyarrow: {}", path, said));
    if (code != kNoPyarrow && code != 127)
      throw BadInput(fmt::format("{} cannot be read: {} ended with code {}", path, python, code));
  }
  throw BadInput(fmt::format(
      "{} is a Parquet or Arrow file, which needs a Python with pyarrow: pip install pyarrow (the "
      "program asks $AFFPCL_PYTHON, then python3)",
      path));
}

}  // namespace affpcl
