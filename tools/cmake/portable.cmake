# Programs for machines without our packages: with WEIR_PORTABLE everything but the C library is
# linked from archives. CUDA's own libraries stay outside.
#
#   weir_find_archive(VARIABLE libname.a PACKAGE package [NEAR library])
#
# sets VARIABLE to the archive's path: the one beside `library`, so that the chosen variant is
# taken, else one of the usual folders. Fails if there is none.
option(WEIR_PORTABLE "Link everything but the C library and CUDA into weir-gpu and weir" OFF)

function(weir_find_archive variable name)
  cmake_parse_arguments(ARG "" "PACKAGE;NEAR" "" ${ARGN})
  set(beside)
  if(ARG_NEAR)
    get_filename_component(beside "${ARG_NEAR}" DIRECTORY)
  endif()
  find_library(_weir_archive_${name} NAMES ${name} HINTS ${beside} NO_CACHE)
  if(NOT _weir_archive_${name})
    message(FATAL_ERROR "WEIR_PORTABLE: there is no ${name}; Debian has it in ${ARG_PACKAGE}")
  endif()
  set(${variable}
      "${_weir_archive_${name}}"
      PARENT_SCOPE)
endfunction()

# Puts the C++ library and the unwinder into a program or a shared library, with definitions of the
# functions that would make those ask for a newer C library than everything else here.
function(weir_static_runtime target)
  target_sources(${target} PRIVATE "${WEIR_SOURCE_DIR}/tools/program/arc4random.cpp"
                                   "${WEIR_SOURCE_DIR}/tools/program/find_object.cpp")
  set_source_files_properties("${WEIR_SOURCE_DIR}/tools/program/arc4random.cpp" TARGET_DIRECTORY ${target}
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
endfunction()

# zlib from its archive, if there is one: a library swapped into programs must not load another
# version of theirs.
function(weir_zlib variable)
  find_package(ZLIB REQUIRED)
  get_filename_component(beside "${ZLIB_LIBRARIES}" DIRECTORY)
  find_library(_weir_zlib_archive NAMES libz.a HINTS "${beside}" NO_CACHE)
  if(_weir_zlib_archive)
    set(${variable} "${_weir_zlib_archive}" PARENT_SCOPE)
  elseif(WEIR_PORTABLE)
    message(FATAL_ERROR "WEIR_PORTABLE: there is no libz.a; Debian has it in zlib1g-dev")
  else()
    set(${variable} ZLIB::ZLIB PARENT_SCOPE)
  endif()
endfunction()
