# The tests: one GoogleTest binary, files of pytest, and scripts. Adding a file is enough: all lists are globs.
#   affpcl/**/*_test.cc, tests/**/*_test.cc, examples/*_test.cc and what they try   -> affpcl_tests
#   report/test/run.mjs     pages in a browser, where the page was built
#   tests/cli/test_*.py     pytest, on the program that AFFPCL_PROGRAM names; _*.py are helpers
#   python/tests/test_*.py  pytest, on the Python package as the build made it
enable_testing()
set(hangs 1800)  # seconds; of a test that hangs. One that works may take a quarter of it on a busy machine.
include(GoogleTest)

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS affpcl/*_test.cc tests/*_test.cc examples/*.cc)
# Programs: tests/install builds them against the installed library.
list(FILTER test_sources EXCLUDE REGEX "/examples/(fit_arrays|run_study|own_method)\\.cc$")
configure_file(cmake/source_dir.cc.in ${generated_dir}/tests/source_dir.cc @ONLY)

add_executable(affpcl_tests ${test_sources} ${generated_dir}/tests/source_dir.cc)
affpcl_flags(affpcl_tests)
target_compile_options(affpcl_tests PRIVATE "$<$<CONFIG:RelWithDebInfo>:-O1;-g0>")  # the work is done in the library: a third less to compile
target_link_libraries(affpcl_tests PRIVATE affpcl affpcl_private GTest::gtest_main Threads::Threads)
target_precompile_headers(affpcl_tests PRIVATE
  <gtest/gtest.h> <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <numeric> <span> <string>
  <string_view> <vector>)
target_compile_options(affpcl_tests PRIVATE ${ccache_pch})
gtest_discover_tests(affpcl_tests
  DISCOVERY_MODE PRE_TEST
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  PROPERTIES TIMEOUT ${hangs})

# What theorems, identities and the catalogue rest on, on the instruction sets that are not this machine's best.
foreach(set IN ITEMS AVX2 portable)
  add_test(NAME on_${set} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMAND affpcl_tests --gtest_brief=1
      --gtest_filter=InstructionSetOfTheTests*:Theory*:Identity*:*Conformance.Method/affpcl*:Gaussian*:-TheoryTd*:TheoryLowerBound*)
  set_tests_properties(on_${set} PROPERTIES TIMEOUT ${hangs} ENVIRONMENT "AFFPCL_TEST_INSTRUCTION_SET=${set}")
endforeach()

function(affpcl_script_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${hangs} SKIP_RETURN_CODE 77)
endfunction()

# A file of pytest is one test, skipped where all its tests are. Arguments: name, Python, file, NAME=VALUE of the environment.
function(affpcl_pytest name python file)
  affpcl_script_test(${name} ${python} -m pytest -q -rs -p no:cacheprovider ${file})
  set_tests_properties(${name} PROPERTIES
    SKIP_REGULAR_EXPRESSION "(^|\n)[0-9]+ skipped(, [0-9]+ warnings?)? in "
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;AFFPCL_PROGRAM=$<TARGET_FILE:affpcl_cli>;${ARGN}")
endfunction()

affpcl_script_test(layers ${affpcl_python} tests/layers.py)
affpcl_script_test(layers_self_test ${affpcl_python} tests/layers.py --self-test)
affpcl_script_test(runpath ${affpcl_python} tests/runpath.py ${PROJECT_BINARY_DIR})
affpcl_script_test(runpath_self_test ${affpcl_python} tests/runpath.py --self-test)
if(NOT instrument)
  affpcl_script_test(hardened ${affpcl_python} tests/hardened.py $<$<BOOL:${AFFPCL_CLI}>:$<TARGET_FILE:affpcl_cli>>
    $<$<BOOL:${AFFPCL_MODULE}>:${PROJECT_BINARY_DIR}/python>
    $<$<AND:$<BOOL:${has_cf_protection}>,$<STREQUAL:$<TARGET_PROPERTY:affpcl,TYPE>,STATIC_LIBRARY>>:$<TARGET_FILE:affpcl>>)
endif()
affpcl_script_test(hardened_self_test ${affpcl_python} tests/hardened.py --self-test)
affpcl_script_test(kernels_unrolled ${affpcl_python} tests/kernels_unrolled.py ${PROJECT_BINARY_DIR})
affpcl_script_test(neon ${affpcl_python} tests/neon.py)

if(AFFPCL_CLI)
  file(GLOB cli_tests CONFIGURE_DEPENDS tests/cli/test_*.py)
  foreach(file IN LISTS cli_tests)
    cmake_path(GET file STEM name)
    string(REGEX REPLACE "^test_" "cli_" name ${name})
    affpcl_pytest(${name} ${affpcl_python} ${file})
  endforeach()

  # The page in a real browser.
  if(report_state STREQUAL ON)
    affpcl_script_test(page ${NODE_PROGRAM} report/test/run.mjs $<TARGET_FILE:affpcl_cli>)
  else()
    affpcl_script_test(page ${affpcl_python} -c "print('skipped: the page was not built'); exit(77)")
  endif()

  # The contract other people's scripts rely on, where its checker lies beside this tree.
  set(contract ${PROJECT_SOURCE_DIR}/../shared/contract/check)
  if(EXISTS ${contract})
    affpcl_script_test(contract ${affpcl_python} ${contract} $<TARGET_FILE:affpcl_cli>)
  endif()
endif()

# Instructions of fixed rounds. Update: the command of this test (ctest -V -R instruction_counts) with --update.
if(NOT instrument)
  add_executable(instruction_counts tests/instruction_counts.cc)
  affpcl_flags(instruction_counts)
  target_link_libraries(instruction_counts PRIVATE affpcl Threads::Threads)
  affpcl_script_test(instruction_counts ${affpcl_python} tests/instruction_counts.py $<TARGET_FILE:instruction_counts>
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
endif()

affpcl_script_test(install ${PROJECT_SOURCE_DIR}/tests/install/run.sh ${PROJECT_BINARY_DIR})
list(JOIN instrument " " consumer_flags)
set_tests_properties(install PROPERTIES
  ENVIRONMENT "CMAKE=${CMAKE_COMMAND};CXX=${CMAKE_CXX_COMPILER};CXXFLAGS=${consumer_flags}")

# The Python package, as the build made it.
if(TARGET _core AND AFFPCL_CLI AND NOT instrument)
  file(GLOB python_tests CONFIGURE_DEPENDS python/tests/test_*.py)
  foreach(file IN LISTS python_tests)
    cmake_path(GET file STEM name)
    affpcl_pytest(python_${name} ${Python_EXECUTABLE} ${file} CXX=${CMAKE_CXX_COMPILER} PYTHONPATH=${python_dir})
  endforeach()
endif()

find_program(GCOVR_PROGRAM gcovr)
mark_as_advanced(GCOVR_PROGRAM)
if(AFFPCL_COVERAGE AND GCOVR_PROGRAM)  # after ctest --preset coverage
  add_custom_target(coverage_report
    COMMAND ${GCOVR_PROGRAM} --root ${PROJECT_SOURCE_DIR} --filter affpcl/ --exclude ".*_test\\.cc" --print-summary
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
endif()
