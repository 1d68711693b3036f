# What affpcl stands on: what the machine has (on Debian tools/setup installs it), else, where AFFPCL_FETCH says so, pinned
# sources (fetch.cmake). docs/decisions/024-wheels.md says why.

find_package(Threads REQUIRED)
include(fetch)
if(NOT AFFPCL_FETCH STREQUAL ALL)
  find_package(hwy 1.0.3 CONFIG)                  # SIMD, run-time dispatch
  find_package(Eigen3 3.4 CONFIG)                 # small dense solves
  find_package(fmt 9 CONFIG)
  find_package(nlohmann_json 3.11 CONFIG)
  if(AFFPCL_CLI)
    find_package(CLI11 2.1 CONFIG)
  endif()
  # Header-only libraries whose CMake files are missing or point to a compiled variant.
  find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h)
  find_path(XXHASH_INCLUDE_DIR xxhash.h)
  find_path(BOOST_MATH_INCLUDE_DIR boost/math/distributions/students_t.hpp)
  mark_as_advanced(TOMLPLUSPLUS_INCLUDE_DIR XXHASH_INCLUDE_DIR BOOST_MATH_INCLUDE_DIR)
endif()
affpcl_need(hwy::hwy highway libhwy-dev)
affpcl_need(Eigen3::Eigen eigen libeigen3-dev)
affpcl_need(fmt::fmt fmt libfmt-dev)
affpcl_need(nlohmann_json::nlohmann_json json nlohmann-json3-dev)
if(AFFPCL_CLI)
  affpcl_need(CLI11::CLI11 cli11 libcli11-dev)
endif()
affpcl_need(TOMLPLUSPLUS_INCLUDE_DIR tomlplusplus libtomlplusplus-dev)
affpcl_need(XXHASH_INCLUDE_DIR xxhash libxxhash-dev)
affpcl_need(BOOST_MATH_INCLUDE_DIR boost_math libboost-dev)
if(AFFPCL_TESTS)
  find_path(RANDOM123_INCLUDE_DIR Random123/philox.h)
  mark_as_advanced(RANDOM123_INCLUDE_DIR)
  affpcl_need(RANDOM123_INCLUDE_DIR "" librandom123-dev)
endif()

# Never fetched: files of a kind whose library is not found are refused in a sentence.
find_package(LibZip)                              # .npz files; cmake/FindLibZip.cmake
if(LibZip_FOUND)
  set_property(SOURCE affpcl/data/npz.cc APPEND PROPERTY COMPILE_DEFINITIONS AFFPCL_ZIP)
  set(zip LibZip::LibZip)
elseif(AFFPCL_TESTS)
  message(FATAL_ERROR "libzip not found: install libzip-dev (tools/setup does).")
endif()
find_package(Sodium)                              # secure sums; cmake/FindSodium.cmake
if(Sodium_FOUND)
  set_property(SOURCE affpcl/federation/masks.cc APPEND PROPERTY COMPILE_DEFINITIONS AFFPCL_SODIUM)
  set(sodium Sodium::Sodium)
elseif(AFFPCL_TESTS)
  message(FATAL_ERROR "libsodium not found: install libsodium-dev (tools/setup does).")
endif()
# Packed tables.
find_package(ZLIB)                                # .gz
find_package(LibLZMA)                             # .xz
find_package(Zstd)                                # .zst; cmake/FindZstd.cmake
set(packers "")
foreach(packer "ZLIB;ZLIB::ZLIB;ZLIB" "LibLZMA;LibLZMA::LibLZMA;LZMA" "Zstd;Zstd::Zstd;ZSTD")
  list(GET packer 0 package)
  list(GET packer 1 library)
  list(GET packer 2 name)
  if(${package}_FOUND)
    list(APPEND packers ${library})
    set_property(SOURCE affpcl/data/unpack.cc APPEND PROPERTY COMPILE_DEFINITIONS AFFPCL_${name})
  endif()
endforeach()

# Everything that .cc files may include and no public header may (tests/layers.py checks). Never installed.
add_library(affpcl_private INTERFACE)
target_include_directories(affpcl_private SYSTEM INTERFACE
  $<$<BOOL:${AFFPCL_TESTS}>:${RANDOM123_INCLUDE_DIR}> ${TOMLPLUSPLUS_INCLUDE_DIR} ${XXHASH_INCLUDE_DIR} ${BOOST_MATH_INCLUDE_DIR})
target_compile_definitions(affpcl_private INTERFACE TOML_HEADER_ONLY=1 ${boost_standalone})
target_link_libraries(affpcl_private INTERFACE
  Eigen3::Eigen fmt::fmt nlohmann_json::nlohmann_json hwy::hwy ${zip})

if(AFFPCL_MPI AND NOT SKBUILD)  # the Python package has no use for it
  set(MPI_CXX_SKIP_MPICXX ON)  # MPI's own C++ names, long withdrawn
  find_package(MPI COMPONENTS CXX)
endif()
if(AFFPCL_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
if(AFFPCL_BENCH)
  find_package(benchmark CONFIG)
endif()
