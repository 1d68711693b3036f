# affpcl_bench: affpcl/**/*_bench.cc and bench/*.cc, on Google Benchmark.
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS affpcl/*_bench.cc bench/*.cc)
if(benchmark_FOUND AND bench_sources)
  add_executable(affpcl_bench ${bench_sources})
  affpcl_flags(affpcl_bench)
  target_link_libraries(affpcl_bench PRIVATE affpcl affpcl_private benchmark::benchmark_main Threads::Threads)
endif()
