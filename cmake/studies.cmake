# Embeds studies/*/spec.toml and claims.toml, and the benchmark's plan, in the library, as generated/studies.cc.
file(GLOB study_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/studies/*)
set(entries "")
foreach(folder IN LISTS study_folders)
  if(NOT EXISTS ${folder}/spec.toml)
    continue()
  endif()
  get_filename_component(name ${folder} NAME)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/spec.toml ${folder}/claims.toml)
  file(READ ${folder}/spec.toml spec)
  file(READ ${folder}/claims.toml claims)
  string(APPEND entries "    {\"${name}\", R\"toml(${spec})toml\", R\"toml(${claims})toml\"},\n")
endforeach()
foreach(part plan tuned)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/studies/benchmark/${part}.json)
  file(READ ${PROJECT_SOURCE_DIR}/studies/benchmark/${part}.json benchmark_${part})
endforeach()
file(CONFIGURE OUTPUT ${generated_dir}/studies.cc @ONLY CONTENT [[
// Made by cmake/studies.cmake from studies/.
#include "affpcl/study/studies.h"

#include "affpcl/study/benchmark.h"

namespace affpcl {

std::span<const EmbeddedStudy> embedded_studies() {
  static constexpr EmbeddedStudy kStudies[] = {
@entries@  };
  return kStudies;
}

std::string_view benchmark_plan() { return R"json(@benchmark_plan@)json"; }
std::string_view benchmark_tuned() { return R"json(@benchmark_tuned@)json"; }

}  // namespace affpcl
]])
target_sources(affpcl PRIVATE ${generated_dir}/studies.cc)
