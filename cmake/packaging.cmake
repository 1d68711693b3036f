# cmake --install; afterwards find_package(affpcl) gives affpcl::affpcl, and find_package(affpcl COMPONENTS mpi)
# affpcl::mpi too, where it was built. tests/install tries both.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/affpcl)

# What a program can include: affpcl/affpcl.h and what that needs. tests/layers.py checks that the list is closed.
file(STRINGS cmake/public_headers.txt public_headers REGEX "^affpcl/")
target_sources(affpcl PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${public_headers})
install(FILES ${generated_dir}/affpcl/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/affpcl)
install(TARGETS affpcl EXPORT affpcl-targets FILE_SET HEADERS)
if(TARGET affpcl_mpi)
  target_sources(affpcl_mpi PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES affpcl/runtime/mpi/mpi.h)
  install(TARGETS affpcl_mpi EXPORT affpcl-targets FILE_SET HEADERS)
endif()
if(AFFPCL_CLI)
  install(TARGETS affpcl_cli)
endif()

install(EXPORT affpcl-targets NAMESPACE affpcl:: DESTINATION ${package_dir})
configure_package_config_file(cmake/affpcl-config.cmake.in affpcl-config.cmake INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(affpcl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/affpcl-config.cmake ${PROJECT_BINARY_DIR}/affpcl-config-version.cmake
  cmake/FindLibZip.cmake cmake/FindSodium.cmake cmake/FindZstd.cmake DESTINATION ${package_dir})

# make deb: a package for the Debian that it is built on.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # pack what was built, not tests too
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME affpcl)
set(CPACK_PACKAGE_VENDOR "the affpcl authors")
set(CPACK_PACKAGE_CONTACT "the affpcl authors")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the program loads, by dpkg-shlibdeps
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfmt-dev, libhwy-dev, libzip-dev, libsodium-dev, zlib1g-dev, liblzma-dev, libzstd-dev")  # to link the library
set(CPACK_STRIP_FILES ON)
include(CPack)
