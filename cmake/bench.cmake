# affpcl_bench: affpcl/**/*_bench.cc and bench/*.cc, on Google Benchmark.
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS affpcl/*_bench.cc bench/*.cc)
if(benchmark_FOUND AND bench_sources)
  add_executable(affpcl_bench ${bench_sources})
  affpcl_flags(affpcl_bench)
  # What we are compared with gets this machine's instruction set; ours is chosen at run time. Nothing of this ships.
  target_compile_options(affpcl_bench PRIVATE -O3 -march=native
    -Wno-maybe-uninitialized)  # GCC 12 suspects its own AVX-512 header
  target_link_libraries(affpcl_bench PRIVATE affpcl affpcl_private benchmark::benchmark_main Threads::Threads)
endif()
