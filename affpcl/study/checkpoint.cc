#include "affpcl/study/checkpoint.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
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
#include "affpcl/base/join.h"
#include "affpcl/base/json.h"
#include "affpcl/math/kernels.h"
#include "affpcl/version.h"

namespace affpcl {
namespace {

namespace fs = std::filesystem;

constexpr int kVersionOfFormat = 2;  // 1: numbers without names
constexpr std::string_view kBefore = "checkpoint-", kAfter = ".affpcl", kPart = ".part";

// A file: a line of JSON (identity, the number of bytes), the tasks, the hash of all that.
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

// The head of a file that this study can go on from; BadInput, with the reason, where it cannot.
Json checked_head(const std::string& line, const Json& identity) {
  Json head;
  try {
    head = parse_json(line);
  } catch (const BadJson&) {  // head stays null, which has no format
  }
  if (!head.contains("format") || head["format"] != "affpcl-checkpoint")
    throw BadInput("it is not a checkpoint");
  if (const int version = head.get_or("version", 0); version != kVersionOfFormat)
    throw BadInput(fmt::format("it has format {}, and this affpcl reads format {}", version,
                               kVersionOfFormat));
  if (const std::string why = foreign(head, identity); !why.empty()) throw BadInput(why);
  return head;
}

// The tasks of a file; BadInput, with the reason, where it cannot be used.
std::vector<TaskState> read_file(const std::string& path, const Json& identity) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!in || !std::getline(in, line)) throw BadInput("it cannot be read");
  const Json head = checked_head(line, identity);
  line += '\n';
  const std::uint64_t size = fs::file_size(path), around = line.size() + sizeof(XXH64_hash_t),
                      bytes = head.get_or("bytes", std::uint64_t{0});
  if (size < around || size - around != bytes)
    throw BadInput(fmt::format("it has {} bytes of tasks and should have {}",
                               size < around ? 0 : size - around, bytes));
  Bytes tasks(bytes);
  XXH64_hash_t wanted = 0;
  in.read(reinterpret_cast<char*>(tasks.data()), static_cast<std::streamsize>(bytes));
  in.read(reinterpret_cast<char*>(&wanted), sizeof wanted);
  Hash hash;
  hash.add(line.data(), line.size());
  hash.add(tasks.data(), tasks.size());
  if (!in || hash.value() != wanted) throw BadInput("it is damaged (its checksum is wrong)");
  return unpack_all(tasks);
}

// What a process left that was killed while it wrote.
void remove_unfinished(const std::string& folder) {
  std::vector<fs::path> all;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kBefore) && name.ends_with(std::string(kAfter) + std::string(kPart)))
      all.push_back(entry.path());
  }
  std::error_code ignored;
  for (const fs::path& path : all) fs::remove(path, ignored);
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
  remove_unfinished(folder_);
  if (!made && found.empty() && !fs::is_empty(folder_))
    throw BadInput(
        fmt::format("{} is a folder of other things; checkpoints need their own", folder_));
  if (!found.empty()) next_ = found.back() + 1;
  identity_ = print_json({{"affpcl", kVersion},
                          {"bytes", nullptr},  // of the tasks
                          {"format", "affpcl-checkpoint"},
                          {"instruction_set", instruction_set()},
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

std::vector<TaskState> Checkpoints::read(const Note& note, const Check& check) const {
  const std::vector<std::int64_t> found = numbers();
  std::vector<std::string> reasons;
  for (auto number = found.rbegin(); number != found.rend(); ++number) {
    try {
      std::vector<TaskState> tasks = read_file(path(*number), parse_json(identity_));
      check(tasks);
      if (!reasons.empty() && note)
        note(fmt::format("{}; going on from {}", join(reasons, "; "), path(*number)));
      return tasks;
    } catch (const std::exception& e) {
      reasons.push_back(fmt::format("{} cannot be used: {}", path(*number), e.what()));
    }
  }
  if (!reasons.empty()) throw BadInput(join(reasons, "; "));
  return {};
}

void Checkpoints::write(const std::map<std::size_t, Bytes>& tasks) {
  std::uint64_t bytes = 0;
  for (const auto& [number, task] : tasks) bytes += sizeof(std::uint64_t) + task.size();
  Json head = parse_json(identity_);
  head["bytes"] = bytes;
  const std::string whole = path(next_), part = whole + std::string(kPart);
  try {
    File file(part);
    const std::string line = print_json(head) + "\n";
    file.put(line.data(), line.size());
    for (const auto& [number, task] : tasks) {
      const std::uint64_t size = task.size();
      file.put(&size, sizeof size);
      file.put(task.data(), task.size());
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
