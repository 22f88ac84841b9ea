# The install rules, and CPack's .deb.
#
# There is one library, libweir-core, with the allocator and the scheduler. It needs only threads.
# The kernels need a BLAS and the trainer's library belongs to its program, so both stay out.
# libweir is the name of the library for LD_PRELOAD, which a linker given -lweir must not find by
# mistake.
#
# It exports every name, because otherwise the headers would have to mark each public class. Until
# 1.0 the ABI is promised for one minor version only, as SOVERSION says.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include("${CMAKE_CURRENT_LIST_DIR}/manual.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/pkg_config.cmake")

set(_weir_include_dir "${PROJECT_BINARY_DIR}/include")
set(_weir_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Weir")
set(_weir_doc_dir "${CMAKE_INSTALL_DATAROOTDIR}/doc/weir")

file(GLOB_RECURSE _weir_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/allocator/*.hpp"
     "${PROJECT_SOURCE_DIR}/scheduler/*.hpp")
add_custom_command(
  OUTPUT "${PROJECT_BINARY_DIR}/installed_headers.stamp"
  COMMAND
    "${CMAKE_COMMAND}" -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}" -D "GENERATED_DIR=${WEIR_GENERATED_DIR}"
    -D "DESTINATION=${_weir_include_dir}/weir" -D "WEIR_HAS_CUDA_TOOLKIT=${WEIR_HAS_CUDA_TOOLKIT}" -P "${CMAKE_CURRENT_LIST_DIR}/collect_headers.cmake"
  COMMAND "${CMAKE_COMMAND}" -E touch "${PROJECT_BINARY_DIR}/installed_headers.stamp"
  DEPENDS ${_weir_headers} "${WEIR_GENERATED_DIR}/allocator/base/version.hpp"
          "${CMAKE_CURRENT_LIST_DIR}/collect_headers.cmake"
          "${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake"
  COMMENT "Collecting the headers to install"
  VERBATIM)
add_custom_target(weir_installed_headers ALL DEPENDS "${PROJECT_BINARY_DIR}/installed_headers.stamp")

# Made of the static libraries' objects, so that nothing is compiled twice. A program of this tree
# links either those or this, never both: each has the process's state (lock ranks, ids).
set(_weir_type SHARED)
if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)
  set(_weir_type STATIC)
endif()
add_library(weir_core ${_weir_type} $<TARGET_OBJECTS:weir_base> $<TARGET_OBJECTS:weir_allocator>
                                   $<TARGET_OBJECTS:weir_scheduler>)
add_library(weir::core ALIAS weir_core)
add_dependencies(weir_core weir_installed_headers)
set_target_properties(
  weir_core
  PROPERTIES OUTPUT_NAME weir-core
             EXPORT_NAME core
             LINKER_LANGUAGE CXX
             VERSION "${PROJECT_VERSION}"
             SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
target_compile_features(weir_core PUBLIC cxx_std_20)
target_include_directories(weir_core INTERFACE $<BUILD_INTERFACE:${_weir_include_dir}>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(weir_core PUBLIC Threads::Threads)
if(WEIR_HAS_CUDA_TOOLKIT)
  # It contains the runtime, and looks for the driver only when a GPU is opened, so it loads
  # anywhere. The runtime's names stay inside: a program with its own runtime must not get this
  # one's.
  target_link_libraries(weir_core PRIVATE CUDA::cudart_static)
  if(NOT (DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS))
    target_link_options(weir_core PRIVATE LINKER:--exclude-libs,libcudart_static.a)
  endif()
endif()
if(_weir_type STREQUAL "SHARED")
  target_link_options(weir_core PRIVATE -Wl,--no-undefined)
endif()

# A program that links the archive provides the runtime.
set(_weir_archive_libs " -pthread")
set(_weir_archive_needs_cuda FALSE)
if(WEIR_HAS_CUDA_TOOLKIT AND _weir_type STREQUAL "STATIC")
  set(_weir_archive_needs_cuda TRUE)
  string(APPEND _weir_archive_libs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/WeirConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/WeirConfig.cmake"
                              INSTALL_DESTINATION "${_weir_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/WeirConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
weir_pkg_config_file(
  OUTPUT "${PROJECT_BINARY_DIR}/weir.pc"
  PREFIX "${CMAKE_INSTALL_PREFIX}"
  LIBDIR "${CMAKE_INSTALL_LIBDIR}"
  INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}"
  TYPE ${_weir_type}
  ARCHIVE_LIBS "${_weir_archive_libs}")

install(TARGETS weir_core EXPORT WeirTargets)
install(TARGETS weir-train weir)
# In a separate folder that no linker searches: it is preloaded, never linked.
install(FILES "${PROJECT_SOURCE_DIR}/tools/preload/borders/cuda_resource.hpp"
              "${PROJECT_SOURCE_DIR}/tools/preload/borders/weir.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir")
# The folder of libweir.so is what PYTHONPATH names.
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/tools/python/weir"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/weir"
  FILES_MATCHING
  PATTERN "*.py")
if(TARGET weir_swap_in)
  install(TARGETS weir_swap_in LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/weir")
endif()
if(TARGET weir_timeline_inject)
  install(TARGETS weir_timeline_inject LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/weir")
endif()
install(DIRECTORY "${_weir_include_dir}/weir" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  EXPORT WeirTargets
  NAMESPACE weir::
  DESTINATION "${_weir_cmake_dir}")
install(FILES "${PROJECT_BINARY_DIR}/WeirConfig.cmake"
              "${PROJECT_BINARY_DIR}/WeirConfigVersion.cmake" DESTINATION "${_weir_cmake_dir}")
install(FILES "${PROJECT_BINARY_DIR}/weir.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(CODE "set(WEIR_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(WEIR_SCRATCH \"${PROJECT_BINARY_DIR}/installed_pages\")
set(WEIR_DOCUMENTS \"${_weir_doc_dir}\")
set(WEIR_DATA \"${CMAKE_INSTALL_DATAROOTDIR}\")")
install(SCRIPT "${CMAKE_CURRENT_LIST_DIR}/install_documents.cmake")
weir_manual(DOCUMENTS "${_weir_doc_dir}" PROGRAMS weir weir-train)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# A .deb must name a maintainer, as "Name <address>". The project has no address: whoever
# distributes packages sets theirs.
set(WEIR_PACKAGE_MAINTAINER
    "Weir developers"
    CACHE STRING "Who answers for the .deb, as: Name <address>")
set(CPACK_GENERATOR DEB)
set(CPACK_SOURCE_GENERATOR "")
set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_VENDOR "Weir")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ
    OWNER_WRITE
    OWNER_EXECUTE
    GROUP_READ
    GROUP_EXECUTE
    WORLD_READ
    WORLD_EXECUTE)
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${WEIR_PACKAGE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "The library libweir-core with its headers, CMake package and pkg-config file,
weir, which swaps Weir into CUDA programs as they are, and weir-train, a training program that shows what admission is worth.")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, pkg-config")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Programs that link the library get a dependency on this package; dpkg refreshes the linker's
# cache.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
include(CPack)
