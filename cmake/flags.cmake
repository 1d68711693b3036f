# affpcl_flags(target): how everything here is compiled.
#
# Numbers must not depend on the optimiser: no contraction into fused operations (kernels ask for FMA by name), no
# -ffast-math, no -march=native (Highway picks the instruction set at run time).

function(affpcl_flags target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE
    -ffp-contract=off
    -Wall -Wextra -Wconversion -Wshadow -Wpedantic
    -Wno-free-nonheap-object  # GCC 12 sees one in every initialiser list of std::variant
    $<$<BOOL:${AFFPCL_WERROR}>:-Werror>
    -fmacro-prefix-map=${source_prefix}/=)  # __FILE__ is affpcl/math/blocks.cc, wherever the tree lies
  if(NOT instrument)  # tests/hardened.py checks what this gives; sanitizers bring their own
    target_compile_options(${target} PRIVATE -fstack-protector-strong -fstack-clash-protection ${control_flow}
      $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
    target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
  endif()
  if(instrument)
    target_compile_options(${target} PRIVATE ${instrument})
    target_link_options(${target} PRIVATE ${instrument})
  endif()
endfunction()

include(CheckPIESupported)
check_pie_supported()  # programs are linked as position independent ones
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fcf-protection has_cf_protection)
set(control_flow $<$<BOOL:${has_cf_protection}>:-fcf-protection>)

set(instrument "")
if(AFFPCL_SANITIZE)
  set(instrument -fsanitize=${AFFPCL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(AFFPCL_COVERAGE)
  set(instrument --coverage)
endif()

# For targets with precompiled headers: without it ccache gives up on them.
set(ccache_pch $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)

# ccache, told to see through the folder's name: a fresh clone and the copy that `make mutants` builds find what the
# development build has compiled. It hands the compiler paths relative to the build folder.
find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
set(source_prefix ${PROJECT_SOURCE_DIR})
if(CCACHE_PROGRAM AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_ABSSTDERR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  file(RELATIVE_PATH source_prefix ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  string(REGEX REPLACE "/$" "" source_prefix "${source_prefix}")
endif()
