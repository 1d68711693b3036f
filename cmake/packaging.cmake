# cmake --install; afterwards find_package(affpcl) gives affpcl::affpcl, and find_package(affpcl COMPONENTS mpi)
# affpcl::mpi too, where it was built. tests/install tries both.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/affpcl)

install(TARGETS affpcl EXPORT affpcl-targets)
if(TARGET affpcl_mpi)
  install(TARGETS affpcl_mpi EXPORT affpcl-targets)
else()
  set(without_mpi PATTERN "mpi" EXCLUDE)  # a header whose functions are in no library
endif()
if(AFFPCL_CLI)
  install(TARGETS affpcl_cli)
endif()
install(DIRECTORY affpcl/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/affpcl
  FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE PATTERN "*-inl.h" EXCLUDE ${without_mpi})
install(FILES ${generated_dir}/affpcl/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/affpcl)

install(EXPORT affpcl-targets NAMESPACE affpcl:: DESTINATION ${package_dir})
configure_package_config_file(cmake/affpcl-config.cmake.in affpcl-config.cmake INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(affpcl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/affpcl-config.cmake ${PROJECT_BINARY_DIR}/affpcl-config-version.cmake
  cmake/FindLibZip.cmake cmake/FindZstd.cmake DESTINATION ${package_dir})
