# Readers of files that come from others, under fuzzing (docs/security.md).
#   affpcl_replay       replays fuzz/corpus and fresh seeds; a test
#   affpcl_replay_asan  the same for tables and JSON, under address and undefined-behaviour sanitizers; a test
#   affpcl_fuzz         libFuzzer, with the preset fuzz (clang): make fuzz
set(fuzz_sources fuzz/targets.cc fuzz/table_targets.cc)
function(affpcl_reader_program name main)
  # The reader of jobs is a part of the program.
  add_executable(${name} ${main} ${fuzz_sources} fuzz/study_targets.cc fuzz/use_targets.cc
    $<FILTER:$<TARGET_OBJECTS:affpcl_cli>,EXCLUDE,/cli/main\\.cc>)
  affpcl_flags(${name})
  target_link_libraries(${name} PRIVATE affpcl affpcl_private Threads::Threads)
  if(TARGET affpcl_mpi)
    target_link_libraries(${name} PRIVATE affpcl_mpi)
  endif()
endfunction()

if(AFFPCL_FUZZ)
  affpcl_reader_program(affpcl_fuzz fuzz/fuzzer.cc)
  target_link_options(affpcl_fuzz PRIVATE -fsanitize=fuzzer)
endif()

if(AFFPCL_TESTS AND AFFPCL_CLI)
  affpcl_reader_program(affpcl_replay fuzz/replay.cc)
  if(NOT instrument)  # a small program: base and data alone are compiled again
    file(GLOB reader_sources CONFIGURE_DEPENDS affpcl/base/*.cc affpcl/data/*.cc)
    list(FILTER reader_sources EXCLUDE REGEX "_test\\.cc$")
    add_executable(affpcl_replay_asan fuzz/replay.cc ${fuzz_sources} ${reader_sources})
    set(instrument -O0 -g0 -fsanitize=address,undefined -fno-sanitize-recover=all)  # half the time to compile of -O1 -g1
    affpcl_flags(affpcl_replay_asan)
    set(instrument "")
    target_compile_definitions(affpcl_replay_asan PRIVATE AFFPCL_FUZZ_TABLES_ONLY)
    target_include_directories(affpcl_replay_asan PRIVATE ${PROJECT_SOURCE_DIR} ${generated_dir})
    target_link_libraries(affpcl_replay_asan PRIVATE affpcl_private ${packers} Threads::Threads)
    if(AFFPCL_PCH)
      target_precompile_headers(affpcl_replay_asan PRIVATE <fmt/format.h> <algorithm> <fstream> <functional> <map>
        <memory> <span> <string> <string_view> <unordered_map> <vector>)
      target_compile_options(affpcl_replay_asan PRIVATE ${ccache_pch})
    endif()
    set(replay_asan $<TARGET_FILE:affpcl_replay_asan>)
  endif()
  affpcl_script_test(fuzz_replay ${affpcl_python} fuzz/replay.py $<TARGET_FILE:affpcl_cli> $<TARGET_FILE:affpcl_replay>
    ${replay_asan})
endif()
