# Pinned sources of libraries that the machine does not have: those of Debian 12, which is what the tests run with, but
# Boost.Math, whose first release that stands alone is later. Each archive has its checksum.
#
#   affpcl_need(THING source PACKAGE)  THING is a target, or a variable with a folder of headers. If there is none yet it
#   is made of the source below, or the build stops and names Debian's PACKAGE.
# A copy of your own instead of the archive: -DFETCHCONTENT_SOURCE_DIR_<SOURCE>=/path/to/it (in capitals).
include(FetchContent)
set(fetched "")

set(source_highway https://github.com/google/highway/archive/refs/tags/1.0.3.tar.gz
  566fc77315878473d9a6bd815f7de78c73734acdcb745c3dde8579560ac5440e)
set(source_eigen https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.bz2
  b4c198460eba6f28d34894e3a5710998818515104d6e74e5cc331ce31e46e626)
set(source_fmt https://github.com/fmtlib/fmt/archive/9.1.0.tar.gz
  5dea48d1fcddc3ec571ce2058e13910a0d4a6bab4cc09a809d8b1dd1c88ae6f2)
set(source_json https://github.com/nlohmann/json/archive/refs/tags/v3.11.2.tar.gz
  d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273)
set(source_cli11 https://github.com/CLIUtils/CLI11/archive/v2.1.2.tar.gz
  26291377e892ba0e5b4972cdfd4a2ab3bf53af8dac1f4ea8fe0d1376b625c8cb)
set(source_tomlplusplus https://github.com/marzer/tomlplusplus/archive/refs/tags/v3.3.0.tar.gz
  fc1a5eb410f3c67e90e5ad1264a1386d020067cfb01b633cc8c0441789aa6cf2)
set(source_xxhash https://github.com/Cyan4973/xxHash/archive/refs/tags/v0.8.1.tar.gz
  3bb6b7d6f30c591dd65aaaff1c8b7a5b94d81687998ca9400082c739a690436c)
set(source_boost_math https://github.com/boostorg/math/archive/refs/tags/boost-1.83.0.tar.gz
  53e5f7539a66899fe0fca3080405cbd5f7959da5394ec13664746741aece1705)

# Two libraries that are compiled, from the few files that we use, with our flags: static, so that nothing need travel with
# what is built.
function(affpcl_fetched_library name folder)
  add_library(${name} STATIC ${ARGN})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${name} PUBLIC cxx_std_17)
  target_include_directories(${name} SYSTEM PUBLIC ${folder})
endfunction()

function(affpcl_fetched_headers target folder)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${folder})
endfunction()

macro(affpcl_need thing source package)
  if(NOT TARGET ${thing} AND NOT ${thing})
    if(AFFPCL_FETCH STREQUAL OFF OR "${source}" STREQUAL "")
      message(FATAL_ERROR "${package} not found: install it (tools/setup does), or fetch sources: -DAFFPCL_FETCH=ON.")
    endif()
    list(GET source_${source} 0 address)
    list(GET source_${source} 1 checksum)
    # Downloaded only: a folder without CMakeLists.txt keeps the library's own build out of ours.
    FetchContent_Declare(${source} URL ${address} URL_HASH SHA256=${checksum} SOURCE_SUBDIR none)
    FetchContent_MakeAvailable(${source})
    list(APPEND fetched ${source})
    set(folder ${${source}_SOURCE_DIR})
    if(${source} STREQUAL highway)
      affpcl_fetched_library(hwy ${folder} ${folder}/hwy/targets.cc ${folder}/hwy/aligned_allocator.cc)
      add_library(hwy::hwy ALIAS hwy)
    elseif(${source} STREQUAL fmt)
      affpcl_fetched_library(fmt ${folder}/include ${folder}/src/format.cc)
      add_library(fmt::fmt ALIAS fmt)
    elseif(${source} STREQUAL eigen)
      affpcl_fetched_headers(Eigen3::Eigen ${folder})
    elseif(${source} STREQUAL json)
      affpcl_fetched_headers(nlohmann_json::nlohmann_json ${folder}/single_include)
    elseif(${source} STREQUAL cli11)
      affpcl_fetched_headers(CLI11::CLI11 ${folder}/include)
    elseif(${source} STREQUAL xxhash)
      set(XXHASH_INCLUDE_DIR ${folder})
    else()
      string(TOUPPER ${source}_INCLUDE_DIR variable)
      set(${variable} ${folder}/include)
    endif()
    if(${source} STREQUAL boost_math)
      set(boost_standalone BOOST_MATH_STANDALONE)
    endif()
  endif()
endmacro()
