#include "affpcl/study/checkpoint.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/math/kernels.h"
#include "affpcl/version.h"

namespace affpcl {
namespace {

namespace fs = std::filesystem;

constexpr int kVersionOfFormat = 1;
constexpr std::string_view kBefore = "checkpoint-", kAfter = ".affpcl";

// A file: a line of JSON (identity, the number of numbers), the numbers, the hash of all that.
struct Hash {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state{XXH3_createState(),
                                                                        XXH3_freeState};
  Hash() { XXH3_64bits_reset(state.get()); }
  void add(const void* p, std::size_t bytes) { XXH3_64bits_update(state.get(), p, bytes); }
  XXH64_hash_t value() const { return XXH3_64bits_digest(state.get()); }
};

[[noreturn]] void cannot_write(const std::string& path) {
  throw Failure(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

class File {
 public:
  explicit File(std::string path)
      : path_(std::move(path)), fd_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666)) {
    if (fd_ < 0) cannot_write(path_);
  }
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  void put(const void* data, std::size_t bytes) {
    const char* from = static_cast<const char*>(data);
    hash_.add(data, bytes);
    while (bytes > 0) {
      const ssize_t done = write(fd_, from, bytes);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) cannot_write(path_);
      from += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }
  void finish() {
    const XXH64_hash_t hash = hash_.value();
    put(&hash, sizeof hash);
    if (fsync(fd_) != 0 || close(std::exchange(fd_, -1)) != 0) cannot_write(path_);
  }

 private:
  std::string path_;
  int fd_;
  Hash hash_;
};

// After it a rename in the folder has reached the disk. Some file systems cannot promise it.
void force_folder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// The first difference of two specs, in words; empty where there is none.
std::string difference(const Json* theirs, const Json* ours, const std::string& key = "") {
  if (theirs != nullptr && ours != nullptr) {
    if (*theirs == *ours) return "";
    std::string found;
    const auto look = [&](const std::string& name, const Json* one, const Json* other) {
      if (found.empty()) found = difference(one, other, key.empty() ? name : key + "." + name);
    };
    const auto element = [](const Json& list, std::size_t i) {
      return i < list.size() ? &list[i] : nullptr;
    };
    if (theirs->is_array() && ours->is_array())
      for (std::size_t i = 0; i < std::max(theirs->size(), ours->size()); ++i)
        look(std::to_string(i), element(*theirs, i), element(*ours, i));
    if (theirs->is_object() && ours->is_object()) {
      for (const JsonMember& m : theirs->members()) look(m.key, &m.value, ours->find(m.key));
      for (const JsonMember& m : ours->members()) look(m.key, theirs->find(m.key), &m.value);
    }
    if (!found.empty()) return found;
  }
  const auto shown = [](const Json* json) {
    return json != nullptr ? print_json(*json) : "not set";
  };
  return fmt::format("{} is {} there and {} here", key.empty() ? "spec" : key, shown(theirs),
                     shown(ours));
}

// Why a checkpoint of another identity cannot be continued here; empty: it can.
std::string foreign(const Json& theirs, const Json& ours) {
  for (const auto& [key, name] :
       {std::pair{"affpcl", "affpcl version"}, {"instruction_set", "instruction set"}})
    if (const auto own = ours.get<std::string>(key);
        theirs.get_or<std::string>(key, "unknown") != own)
      return fmt::format("it is of another {}: {}, not {}", name,
                         theirs.get_or<std::string>(key, "unknown"), own);
  const std::string change = difference(theirs.find("spec"), ours.find("spec"));
  return change.empty() ? "" : "it is of another study: " + change;
}

// The tasks of a file; std::runtime_error, with the reason, if it cannot be used.
std::vector<TaskState> read_file(const std::string& path, const Json& identity) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!in || !std::getline(in, line)) throw std::runtime_error("it cannot be read");
  Json head;
  try {
    head = parse_json(line);
  } catch (const BadJson&) {  // head stays null, which has no format
  }
  if (!head.contains("format") || head["format"] != "affpcl-checkpoint")
    throw std::runtime_error("it is not a checkpoint");
  if (const int version = head.get_or("version", 0); version != kVersionOfFormat)
    throw std::runtime_error(fmt::format("it has format {}, and this affpcl reads format {}",
                                         version, kVersionOfFormat));
  if (const std::string why = foreign(head, identity); !why.empty()) throw std::runtime_error(why);
  const auto count = head.get_or("numbers", std::uint64_t{0});
  const std::uint64_t size = line.size() + 1 + count * sizeof(double) + sizeof(XXH64_hash_t);
  if (fs::file_size(path) != size)
    throw std::runtime_error(
        fmt::format("it has {} bytes and should have {}", fs::file_size(path), size));
  std::vector<double> numbers(count);
  XXH64_hash_t wanted = 0;
  in.read(reinterpret_cast<char*>(numbers.data()),
          static_cast<std::streamsize>(count * sizeof(double)));
  in.read(reinterpret_cast<char*>(&wanted), sizeof wanted);
  Hash hash;
  line += '\n';
  hash.add(line.data(), line.size());
  hash.add(numbers.data(), numbers.size() * sizeof(double));
  if (!in || hash.value() != wanted)
    throw std::runtime_error("it is damaged (its checksum is wrong)");
  std::vector<TaskState> tasks;
  for (std::span<const double> rest = numbers; !rest.empty();) tasks.push_back(take(rest));
  return tasks;
}

}  // namespace

Checkpoints::Checkpoints(std::string folder, const Study& study, bool resume)
    : folder_(std::move(folder)) {
  std::error_code error;
  const bool made = fs::create_directories(folder_, error);
  if (error || !fs::is_directory(folder_))
    throw BadInput(fmt::format("cannot keep checkpoints in {}: {}", folder_,
                               error ? error.message() : "it is not a folder"));
  if (access(folder_.c_str(), W_OK) != 0)
    throw BadInput(fmt::format("cannot keep checkpoints in {}: {}", folder_, std::strerror(errno)));
  const std::vector<std::int64_t> found = numbers();
  if (!found.empty() && !resume)
    throw BadInput(fmt::format(
        "{} holds checkpoints already; go on from them with `resume`, or choose another folder",
        folder_));
  if (!made && found.empty() && !fs::is_empty(folder_))
    throw BadInput(
        fmt::format("{} is a folder of other things; checkpoints need their own", folder_));
  if (!found.empty()) next_ = found.back() + 1;
  identity_ = print_json({{"affpcl", kVersion},
                          {"format", "affpcl-checkpoint"},
                          {"instruction_set", instruction_set()},
                          {"numbers", nullptr},  // how many follow
                          {"spec", parse_json(study.json)},
                          {"version", kVersionOfFormat}});
}

std::string Checkpoints::path(std::int64_t number) const {
  return (fs::path(folder_) / fmt::format("{}{}{}", kBefore, number, kAfter)).string();
}

std::vector<std::int64_t> Checkpoints::numbers() const {
  std::vector<std::int64_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) continue;
    std::int64_t number = 0;
    const char *first = name.data() + kBefore.size(),
               *last = name.data() + name.size() - kAfter.size();
    if (std::from_chars(first, last, number).ptr == last) found.push_back(number);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<TaskState> Checkpoints::read(
    const std::function<void(const std::string&)>& note) const {
  const std::vector<std::int64_t> found = numbers();
  std::vector<std::string> reasons;
  for (auto number = found.rbegin(); number != found.rend(); ++number) {
    try {
      std::vector<TaskState> tasks = read_file(path(*number), parse_json(identity_));
      if (!reasons.empty() && note)
        note(fmt::format("{}; going on from {}", fmt::join(reasons, "; "), path(*number)));
      return tasks;
    } catch (const std::exception& e) {
      reasons.push_back(fmt::format("{} cannot be used: {}", path(*number), e.what()));
    }
  }
  if (!reasons.empty()) throw BadInput(fmt::format("{}", fmt::join(reasons, "; ")));
  return {};
}

void Checkpoints::write(const std::vector<TaskState*>& tasks) {
  std::uint64_t count = 0;
  for (const TaskState* t : tasks) {
    count += 4 + t->state.numbers.size();
    for (const std::vector<double>& list : t->state.numbers) count += list.size();
  }
  Json head = parse_json(identity_);
  head["numbers"] = count;
  const std::string whole = path(next_), part = whole + ".part";
  try {
    File file(part);
    const std::string line = print_json(head) + "\n";
    file.put(line.data(), line.size());
    std::vector<double> numbers;
    for (const TaskState* t : tasks) {
      numbers.clear();
      append(*t, numbers);
      file.put(numbers.data(), numbers.size() * sizeof(double));
    }
    file.finish();
    if (rename(part.c_str(), whole.c_str()) != 0) cannot_write(whole);
  } catch (...) {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw;
  }
  force_folder(folder_);
  const std::vector<std::int64_t> all = numbers();
  for (std::size_t i = 0; i + 2 < all.size(); ++i) fs::remove(path(all[i]));
  ++next_;
}

}  // namespace affpcl
