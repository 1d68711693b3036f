// Files packed by gzip, zstd or xz, unpacked block by block.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "affpcl/base/function_ref.h"

namespace affpcl {

enum class Packing { kNone, kGzip, kZstd, kXz };

Packing packing_of(std::string_view opening);  // by the first bytes, eight of them

using ReadBytes = FunctionRef<std::size_t(char* to, std::size_t bytes)>;  // 0: the end
using WriteBytes = FunctionRef<void(const char* from, std::size_t bytes)>;

// BadInput, which names `path`, where the bytes are damaged or cut off, or where this program was
// built without the library that unpacks them.
void unpack(const std::string& path, Packing packing, ReadBytes read, WriteBytes write);

}  // namespace affpcl
