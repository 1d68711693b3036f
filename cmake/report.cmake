# The report page: report/ bundled to one HTML file and embedded in the library, where node and its packages are there.
# A source package brings the page as report/page.html. Without either everything else is built all the same, and
# `affpcl report` says what to do.
find_program(NODE_PROGRAM node)
mark_as_advanced(NODE_PROGRAM)
set(report_dir ${PROJECT_SOURCE_DIR}/report)
set(report_source ${generated_dir}/page_template.cc)
if(AFFPCL_REPORT AND NODE_PROGRAM AND EXISTS ${report_dir}/node_modules/esbuild)
  set(report_state ON)
  file(GLOB report_files CONFIGURE_DEPENDS ${report_dir}/src/* ${PROJECT_SOURCE_DIR}/python/affpcl/method_colours.json)
  add_custom_command(OUTPUT ${report_source}
    COMMAND ${NODE_PROGRAM} ${report_dir}/build.mjs ${generated_dir}/report.html
    COMMAND ${CMAKE_COMMAND} -D page=${generated_dir}/report.html -D out=${report_source}
            -P ${CMAKE_CURRENT_LIST_DIR}/embed_page.cmake
    DEPENDS ${report_files} ${report_dir}/build.mjs ${report_dir}/package-lock.json
            ${CMAKE_CURRENT_LIST_DIR}/embed_page.cmake
    COMMENT "Bundling the report page" VERBATIM)
else()
  set(report_page ${report_dir}/page.html)
  if(AFFPCL_REPORT AND EXISTS ${report_page})
    set(report_state "ON (bundled before)")
  else()
    set(report_state "OFF")
    if(AFFPCL_REPORT)
      set(report_state "OFF (no node, or its packages are missing: tools/setup report)")
    endif()
    set(report_page ${generated_dir}/no_page.html)
    file(CONFIGURE OUTPUT ${report_page} CONTENT "")
    set(report_source ${generated_dir}/no_page_template.cc)
  endif()
  add_custom_command(OUTPUT ${report_source}
    COMMAND ${CMAKE_COMMAND} -D page=${report_page} -D out=${report_source}
            -P ${CMAKE_CURRENT_LIST_DIR}/embed_page.cmake
    DEPENDS ${report_page} ${CMAKE_CURRENT_LIST_DIR}/embed_page.cmake VERBATIM)
endif()
target_sources(affpcl PRIVATE ${report_source})
set_source_files_properties(${report_source} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
