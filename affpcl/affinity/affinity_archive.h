// The scores of a problem as bytes, to send between ranks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "affpcl/affinity/affinity.h"

namespace affpcl {

std::vector<std::byte> pack(const Affinity& affinity);
Affinity unpack_affinity(std::span<const std::byte> bytes);

}  // namespace affpcl
