# What the Python wheel packs: the component `wheel`, an installation of its own that lands in the
# folder of the Python package, weir/bin and weir/lib. `weir` finds the library as in any installed
# tree. Its programs contain all but the C library and CUDA, as far as the archives are there; they
# are linked of the same objects as those of the build.
include(GNUInstallDirs)

set(WEIR_TORCH_VERSIONS
    ""
    CACHE STRING "Versions of PyTorch to build plugs for, fetching headers; KNOWN: all in tools/torch/versions.txt")
add_custom_target(weir_wheel)

function(_weir_wheel_program name)
  set(target weir_wheel_${name})
  add_executable(${target} $<TARGET_OBJECTS:${name}>)
  _weir_configure(${target})
  get_target_property(libraries ${name} LINK_LIBRARIES)
  target_link_libraries(${target} PRIVATE ${libraries})
  weir_static_runtime(${target})
  set_target_properties(
    ${target}
    PROPERTIES WEIR_SELF_CONTAINED ON
               LINKER_LANGUAGE CXX
               OUTPUT_NAME ${name}
               RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/wheel"
               SKIP_BUILD_RPATH ON)
  add_dependencies(weir_wheel ${target})
  install(TARGETS ${target} DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT wheel EXCLUDE_FROM_ALL)
endfunction()
_weir_wheel_program(weir)
_weir_wheel_program(weir-train)

foreach(target IN ITEMS weir_swap_in weir_timeline_inject)
  if(TARGET ${target})
    add_dependencies(weir_wheel ${target})
    install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/weir"
                                      COMPONENT wheel EXCLUDE_FROM_ALL)
  endif()
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/tools/preload/borders/cuda_resource.hpp"
              "${PROJECT_SOURCE_DIR}/tools/preload/borders/weir.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir" COMPONENT wheel EXCLUDE_FROM_ALL)

# Manual pages, completions, the pages that they name, and scripts: below share/ of the environment, for which
# a wheel has a data folder. scikit-build-core names it, to tools/wheel when that packs a finished build.
add_dependencies(weir_wheel weir_manual)
install(
  CODE "set(_weir_share \"${SKBUILD_DATA_DIR}\")
if(NOT _weir_share)
  set(_weir_share \"\$ENV{SKBUILD_DATA_DIR}\")
endif()
if(NOT _weir_share)
  message(FATAL_ERROR \"SKBUILD_DATA_DIR is not set: tools/wheel packs the wheel of a build\")
endif()
set(WEIR_DATA \"\${_weir_share}/share\")
set(WEIR_DOCUMENTS \"\${WEIR_DATA}/doc/weir\")
set(WEIR_NAMED_DATA \"\\\$VIRTUAL_ENV/share\")
set(WEIR_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(WEIR_SCRATCH \"${PROJECT_BINARY_DIR}/installed_pages\")
set(WEIR_MANUAL \"${PROJECT_BINARY_DIR}/manual\")
set(WEIR_GZIP \"${WEIR_GZIP}\")
include(\"${CMAKE_CURRENT_LIST_DIR}/install_documents.cmake\")
include(\"${CMAKE_CURRENT_LIST_DIR}/install_manual.cmake\")"
  COMPONENT wheel EXCLUDE_FROM_ALL)

# Plugs lie beside libweir.so, whoever built them: this, or tools/torch/build by hand.
if(TARGET weir_swap_in)
  set(_weir_versions ${WEIR_TORCH_VERSIONS})
  if(_weir_versions STREQUAL "KNOWN")
    file(STRINGS "${PROJECT_SOURCE_DIR}/tools/torch/versions.txt" _weir_versions REGEX "^[0-9]")
  endif()
  file(GLOB _weir_plug_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/torch/plug/*.[ch]pp")
  foreach(_weir_version IN LISTS _weir_versions)
    set(_weir_stamp "${PROJECT_BINARY_DIR}/wheel/plug_${_weir_version}.stamp")
    add_custom_command(
      OUTPUT "${_weir_stamp}"
      COMMAND "${PROJECT_SOURCE_DIR}/tools/wheel/plug" ${_weir_version} "$<TARGET_FILE_DIR:weir_swap_in>"
              "${WEIR_CUDA_INCLUDE_DIR}" "${WEIR_BUILD_PYTHON}"
      COMMAND "${CMAKE_COMMAND}" -E touch "${_weir_stamp}"
      DEPENDS ${_weir_plug_sources} "${PROJECT_SOURCE_DIR}/tools/preload/borders/weir.h"
      VERBATIM)
    list(APPEND _weir_plugs "${_weir_stamp}")
  endforeach()
  add_custom_target(weir_torch_plugs DEPENDS ${_weir_plugs})
  add_dependencies(weir_wheel weir_torch_plugs)
  install(
    CODE "file(GLOB plugs \"$<TARGET_FILE_DIR:weir_swap_in>/libweir_torch_*.so\")
  if(plugs)
    file(INSTALL \${plugs} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/weir\")
  endif()"
    ALL_COMPONENTS)
endif()

# The licenses of what the programs contain, where the system keeps them.
foreach(package IN ITEMS libjs-dygraphs libopenblas-dev nlohmann-json3-dev rapidjson-dev zlib1g-dev)
  install(FILES "/usr/share/doc/${package}/copyright" DESTINATION "licenses/${package}"
          COMPONENT wheel EXCLUDE_FROM_ALL OPTIONAL)
endforeach()
