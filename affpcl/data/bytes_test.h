// Bytes of files for tests of binary formats.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace affpcl {

template <class T>
std::string bytes_of(T value, bool big_endian) {
  std::string b(sizeof(T), '\0');
  std::memcpy(b.data(), &value, sizeof(T));
  if (big_endian != (std::endian::native == std::endian::big)) std::reverse(b.begin(), b.end());
  return b;
}

// A file of NumPy's: `dict` is its header, as Python writes it.
inline std::string npy_bytes(const std::string& dict, const std::string& data, int version = 1) {
  const std::string header = dict + "   \n";
  const auto size = static_cast<std::uint32_t>(header.size());
  return "\x93NUMPY" + std::string{static_cast<char>(version), '\0'} +
         (version == 1 ? bytes_of(static_cast<std::uint16_t>(size), false)
                       : bytes_of(size, false)) +
         header + data;
}

inline std::string npy_bytes(const std::string& descr, const std::string& shape,
                             const std::string& data, const char* fortran = "False") {
  return npy_bytes(
      "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }", data);
}

}  // namespace affpcl
