# The Python package: the extension module affpcl._core and the .py files around it. `pip install .` comes here by way
# of pyproject.toml; a development build puts the package into <build>/python, for the tests.
if(NOT SKBUILD)  # the interpreter that tools/setup python equipped
  find_program(module_python python NO_DEFAULT_PATH PATHS ${PROJECT_SOURCE_DIR}/.venv/bin NO_CACHE)
  if(NOT module_python)
    return()
  endif()
  set(Python_EXECUTABLE ${module_python})
endif()
find_package(Python 3.10 COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
if(Python_FOUND)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind CONFIG HINTS ${nanobind_dir})
endif()
if(NOT nanobind_FOUND)
  if(SKBUILD)
    message(FATAL_ERROR "The Python package needs nanobind and Python's headers.")
  endif()
  return()
endif()

file(GLOB module_sources CONFIGURE_DEPENDS python/core/*.cc)
nanobind_add_module(_core STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS ${module_sources})
affpcl_flags(_core)
target_include_directories(_core PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(_core PRIVATE affpcl affpcl_private Threads::Threads)

# What the package needs beyond Python's own libraries travels with it.
set_target_properties(_core PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS _core LIBRARY DESTINATION affpcl COMPONENT python EXCLUDE_FROM_ALL)
install(IMPORTED_RUNTIME_ARTIFACTS fmt::fmt hwy::hwy LIBRARY DESTINATION affpcl COMPONENT python EXCLUDE_FROM_ALL)

if(NOT SKBUILD)
  set(python_dir ${PROJECT_BINARY_DIR}/python)
  file(MAKE_DIRECTORY ${python_dir}/affpcl)
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${python_dir}/affpcl)
  file(GLOB package_files CONFIGURE_DEPENDS python/affpcl/*.py python/affpcl/*.pyi python/affpcl/py.typed)
  foreach(file IN LISTS package_files)
    cmake_path(GET file FILENAME name)
    file(CREATE_LINK ${file} ${python_dir}/affpcl/${name} SYMBOLIC)
  endforeach()
endif()
