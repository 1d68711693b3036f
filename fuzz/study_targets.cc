// Specs, finite systems, models, saved tasks and result folders.
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

#include "affpcl/base/error.h"
#include "affpcl/output/model_file.h"
#include "affpcl/output/page.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/study/spec.h"
#include "affpcl/study/task.h"
#include "fuzz/targets.h"

namespace affpcl::fuzz {
namespace {

template <class Read>
void refusable(Read read) {
  try {
    read();
  } catch (const BadInput&) {
  } catch (const Failure&) {
  }
}

void read_spec(std::string_view bytes) {
  refusable([&] { read_study(std::string(bytes), "spec.toml", {}); });
}

void read_system(std::string_view bytes) {
  const std::string path = scratch_file("system.json", bytes);
  refusable([&] { read_finite_system(path); });
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

void read_summary(std::string_view bytes) {
  const std::string path = scratch_file("summary.json", bytes);
  const std::string folder[] = {std::filesystem::path(path).parent_path().string()};
  refusable([&] { report_page(folder); });
}

}  // namespace

std::span<const Target> study_targets() {
  static constexpr Target kAll[] = {
      {"spec", read_spec},     {"system", read_system},
      {"model", read_model_file}, {"tasks", read_tasks},   {"summary", read_summary},
  };
  return kAll;
}

}  // namespace affpcl::fuzz
