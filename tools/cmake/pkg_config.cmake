# Writes weir.pc. Its paths are relative to the file, so that the tree can be moved; a folder
# configured as an absolute path stays absolute.
#
#   weir_pkg_config_file(OUTPUT file PREFIX path LIBDIR path INCLUDEDIR path TYPE SHARED|STATIC
#                        ARCHIVE_LIBS flags)
set(_weir_pkg_config_template "${CMAKE_CURRENT_LIST_DIR}/weir.pc.in")

function(weir_pkg_config_file)
  cmake_parse_arguments(ARG "" "OUTPUT;PREFIX;LIBDIR;INCLUDEDIR;TYPE;ARCHIVE_LIBS" "" ${ARGN})

  if(IS_ABSOLUTE "${ARG_LIBDIR}")
    set(prefix "${ARG_PREFIX}")
    set(libdir "${ARG_LIBDIR}")
  else()
    file(RELATIVE_PATH up "/prefix/${ARG_LIBDIR}/pkgconfig" "/prefix")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(prefix "\${pcfiledir}/${up}")
    set(libdir "\${prefix}/${ARG_LIBDIR}")
  endif()
  if(IS_ABSOLUTE "${ARG_INCLUDEDIR}")
    set(includedir "${ARG_INCLUDEDIR}")
  else()
    set(includedir "\${prefix}/${ARG_INCLUDEDIR}")
  endif()

  # A program that links the archive needs the shared library's own dependencies.
  set(threads "Libs.private: -pthread")
  set(libs)
  if(ARG_TYPE STREQUAL "STATIC")
    set(libs "${ARG_ARCHIVE_LIBS}")
    set(threads "")
  endif()
  configure_file("${_weir_pkg_config_template}" "${ARG_OUTPUT}" @ONLY)
endfunction()
