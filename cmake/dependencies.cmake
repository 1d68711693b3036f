# What affpcl stands on, all from the distribution (tools/setup installs it). docs/decisions says why each is there.

find_package(Threads REQUIRED)
find_package(hwy 1.0.3 CONFIG REQUIRED)           # SIMD, run-time dispatch
find_package(Eigen3 3.4 CONFIG REQUIRED)          # small dense solves
find_package(fmt 9 CONFIG REQUIRED)
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
find_package(LibZip REQUIRED)                     # .npz files; cmake/FindLibZip.cmake
find_package(Sodium REQUIRED)                     # secure sums; cmake/FindSodium.cmake
# Packed tables. Without one of them its files are refused in a sentence.
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

# Header-only libraries whose CMake files are missing or point to a compiled variant.
function(affpcl_find_header variable header package)
  find_path(${variable} ${header})
  mark_as_advanced(${variable})
  if(NOT ${variable})
    message(FATAL_ERROR "<${header}> not found: install ${package} (tools/setup does).")
  endif()
endfunction()
affpcl_find_header(RANDOM123_INCLUDE_DIR Random123/philox.h librandom123-dev)
affpcl_find_header(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h libtomlplusplus-dev)
affpcl_find_header(XXHASH_INCLUDE_DIR xxhash.h libxxhash-dev)
affpcl_find_header(BOOST_MATH_INCLUDE_DIR boost/math/distributions/students_t.hpp libboost-dev)

# Everything that .cc files may include and no public header may (tests/layers.py checks). Never installed.
add_library(affpcl_private INTERFACE)
target_include_directories(affpcl_private SYSTEM INTERFACE
  ${RANDOM123_INCLUDE_DIR} ${TOMLPLUSPLUS_INCLUDE_DIR} ${XXHASH_INCLUDE_DIR} ${BOOST_MATH_INCLUDE_DIR})
target_compile_definitions(affpcl_private INTERFACE TOML_HEADER_ONLY=1)
target_link_libraries(affpcl_private INTERFACE
  Eigen3::Eigen fmt::fmt nlohmann_json::nlohmann_json hwy::hwy LibZip::LibZip)

if(AFFPCL_CLI)
  find_package(CLI11 2.1 CONFIG REQUIRED)
endif()
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
