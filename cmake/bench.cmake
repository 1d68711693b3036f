# affpcl_bench: *_bench.cc, on Google Benchmark. eigen_round: what bench/compare.py puts beside NumPy.
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS affpcl/*_bench.cc bench/*_bench.cc)
add_executable(eigen_round bench/eigen_round.cc)
affpcl_flags(eigen_round)
target_compile_options(eigen_round PRIVATE -O3 -march=native -Wno-maybe-uninitialized)
target_link_libraries(eigen_round PRIVATE affpcl_private)
if(benchmark_FOUND AND bench_sources)
  add_executable(affpcl_bench ${bench_sources})
  affpcl_flags(affpcl_bench)
  # What we are compared with gets this machine's instruction set; ours is chosen at run time. Nothing of this ships.
  target_compile_options(affpcl_bench PRIVATE -O3 -march=native
    -Wno-maybe-uninitialized)  # GCC 12 suspects its own AVX-512 header
  target_link_libraries(affpcl_bench PRIVATE affpcl affpcl_private benchmark::benchmark_main Threads::Threads)
endif()
