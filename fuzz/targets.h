// Readers of files that come from others, each as a function of bytes. A reader accepts the bytes
// or refuses them by BadInput or Failure; anything else that leaves it is a fault.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/error.h"

namespace affpcl::fuzz {

struct Target {
  std::string_view name;  // of its folder below fuzz/corpus
  void (*read)(std::string_view bytes);
};

std::span<const Target> table_targets();
std::span<const Target> study_targets();  // specs, systems, models, what is saved and sent
std::span<const Target> use_targets();    // what is done with what was read
std::vector<Target> targets();
const Target* find_target(std::string_view name);  // null where there is none

template <class Read>
void refusable(Read read) {
  try {
    read();
  } catch (const BadInput&) {
  } catch (const Failure&) {
  }
}

// Writes a file of this name in a folder of this process; returns its path.
std::string scratch_file(const std::string& name, std::string_view bytes);

}  // namespace affpcl::fuzz
