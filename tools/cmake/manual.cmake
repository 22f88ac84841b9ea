# Manual pages and completions, which the programs write themselves from their flags.
#
#   weir_manual(DOCUMENTS share/doc/weir PROGRAMS weir weir-train)

# Builds the pages and the scripts of each program in manual/PROGRAM of the build, and installs them.
# DOCUMENTS is the folder of the installed pages, which manual pages name.
function(weir_manual)
  cmake_parse_arguments(ARG "" "DOCUMENTS" "PROGRAMS" ${ARGN})
  set(made)
  foreach(program IN LISTS ARG_PROGRAMS)
    set(folder "${PROJECT_BINARY_DIR}/manual/${program}")
    add_custom_command(
      OUTPUT "${folder}/done"
      COMMAND "${CMAKE_COMMAND}" -E rm -rf "${folder}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}/man1" "${folder}/bash" "${folder}/zsh"
      COMMAND ${program} --manual "${folder}/man1" "@DOCUMENTS@"
      COMMAND ${program} --completion bash > "${folder}/bash/${program}"
      COMMAND ${program} --completion zsh > "${folder}/zsh/_${program}"
      COMMAND "${CMAKE_COMMAND}" -E touch "${folder}/done"
      DEPENDS ${program}
      COMMENT "Writing the manual and the completions of ${program}"
      VERBATIM)
    list(APPEND made "${folder}/done")
  endforeach()
  add_custom_target(weir_manual ALL DEPENDS ${made})
  find_program(WEIR_GZIP gzip)
  install(CODE "set(WEIR_MANUAL \"${PROJECT_BINARY_DIR}/manual\")
set(WEIR_DOCUMENTS \"${ARG_DOCUMENTS}\")
set(WEIR_DATA \"${CMAKE_INSTALL_DATAROOTDIR}\")
set(WEIR_GZIP \"${WEIR_GZIP}\")")
  install(SCRIPT "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/install_manual.cmake")
endfunction()
