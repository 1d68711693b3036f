// Specs, models, saved tasks, checkpoints, and what sites and the centre of a
// federation send and keep.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

#include "affpcl/base/error.h"
#include "affpcl/federation/journal.h"
#include "affpcl/federation/message.h"
#include "affpcl/output/model_file.h"
#include "affpcl/study/spec.h"
#include "affpcl/study/study.h"
#include "affpcl/study/task.h"
#include "fuzz/targets.h"

namespace affpcl::fuzz {
namespace {

void read_spec(std::string_view bytes) {
  refusable([&] { read_study(std::string(bytes), "spec.toml", {}); });
}

// A model that was read can be written and read again.
void read_model_file(std::string_view bytes) {
  refusable([&] {
    const Model model = parse_model(std::string(bytes), "model.json");
    std::string again;
    try {
      again = model_json(parse_model(model_json(model), "again"));
    } catch (const BadInput& e) {
      throw std::logic_error(e.what());
    }
    if (again != model_json(model)) throw std::logic_error("the model changes");
  });
}

// What lies behind the checksum of a checkpoint.
void read_tasks(std::string_view bytes) {
  refusable([&] { unpack_all(std::as_bytes(std::span(bytes))); });
}

// A checksum guards the door against damage, not against forgery: these targets put the right one.
std::string checksum(std::string_view bytes) {
  const XXH64_hash_t hash = XXH3_64bits(bytes.data(), bytes.size());
  return {reinterpret_cast<const char*>(&hash), sizeof hash};
}

// A checkpoint of the study in seeds.py (CHECKPOINT) without its checksum, from which that study
// goes on.
void read_checkpoint(std::string_view bytes) {
  static const Study study = read_study(
      "[problem]\nkind = 'gaussian'\nagents = 3\ndim = 2\n[run]\nsteps = 6\nreplicates = 2\n"
      "[[method]]\nkind = 'affpcl'\nguard = 'full'\n[[method]]\nkind = 'scaffold'\nperiod = 2\n",
      "checkpoint", {});
  const std::string path =
      scratch_file("saved/checkpoint-1.affpcl", std::string(bytes) + checksum(bytes));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  StudyOptions options;
  options.threads = 1;
  options.checkpoint = folder.string();
  options.resume = true;
  refusable([&] { run_study(study, options); });
  std::filesystem::remove_all(folder);
}

// What was read is encoded to the same bytes.
void read_message(std::string_view bytes) {
  const std::string whole = checksum(bytes) + std::string(bytes);
  refusable([&] {
    if (SiteMessage::decoded(whole).encoded() != whole)
      throw std::logic_error("the message changes");
  });
  refusable([&] { fixed_of(bytes); });
}

// Messages of these lengths, each with its checksum put right.
void read_journal_file(std::string_view bytes) {
  std::string all;
  while (bytes.size() >= sizeof(std::uint16_t)) {
    const std::size_t wanted = static_cast<unsigned char>(bytes[0]) +
                               std::size_t{256} * static_cast<unsigned char>(bytes[1]);
    bytes.remove_prefix(sizeof(std::uint16_t));
    const std::string_view content = bytes.substr(0, wanted);
    const std::uint64_t size = wanted + sizeof(XXH64_hash_t);  // more than there is: it was cut off
    all.append(reinterpret_cast<const char*>(&size), sizeof size);
    all += checksum(content);
    all += content;
    bytes.remove_prefix(content.size());
  }
  all += bytes;
  const std::string path = scratch_file("journal", all);
  refusable([&] { read_journal(path, "job", {"a", "b"}); });
}

}  // namespace

std::span<const Target> study_targets() {
  static constexpr Target kAll[] = {
      {"spec", read_spec},       {"model", read_model_file},     {"tasks", read_tasks},
      {"message", read_message}, {"journal", read_journal_file}, {"checkpoint", read_checkpoint},
  };
  return kAll;
}

}  // namespace affpcl::fuzz
