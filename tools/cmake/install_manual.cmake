# Installs manual pages and completions. Run by `cmake --install` and cpack; weir_manual sets:
#
#   WEIR_MANUAL      the folder in which the programs wrote them
#   WEIR_DOCUMENTS   the folder of the installed pages, below the prefix or absolute
#   WEIR_DATA        share, below the prefix or absolute
#   WEIR_NAMED_DATA  how manual pages name it; its path, unless given
#   WEIR_GZIP        packs manual pages; empty: they stay as they are
cmake_policy(VERSION 3.22)
cmake_path(ABSOLUTE_PATH WEIR_DATA BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE _data)
cmake_path(ABSOLUTE_PATH WEIR_DOCUMENTS BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE _documents)
if(DEFINED WEIR_NAMED_DATA)
  string(REPLACE "${_data}" "${WEIR_NAMED_DATA}" _documents "${_documents}")
endif()

# Only here is it known where the pages go. Packed as Debian wants it: without name and time.
# A folder of its own: two installations may run at once.
string(RANDOM LENGTH 12 _ready)
set(_ready "${WEIR_MANUAL}/installed/${_ready}")
file(GLOB _pages "${WEIR_MANUAL}/*/man1/*.1")
if(NOT _pages)
  message(FATAL_ERROR "there are no manual pages in ${WEIR_MANUAL}: build all first")
endif()
foreach(_page IN LISTS _pages)
  file(READ "${_page}" _text)
  string(REPLACE "@DOCUMENTS@" "${_documents}" _text "${_text}")
  get_filename_component(_name "${_page}" NAME)
  file(WRITE "${_ready}/${_name}" "${_text}")
  if(WEIR_GZIP)
    execute_process(COMMAND "${WEIR_GZIP}" -9 -n "${_ready}/${_name}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
file(GLOB _pages "${_ready}/*")
file(INSTALL DESTINATION "${_data}/man/man1" FILES ${_pages})
file(REMOVE_RECURSE "${_ready}")

file(GLOB _scripts "${WEIR_MANUAL}/*/bash/*")
file(INSTALL DESTINATION "${_data}/bash-completion/completions" FILES ${_scripts})
# Debian's zsh looks for packages' functions in a folder of its own name.
set(_zsh site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(_zsh vendor-completions)
endif()
file(GLOB _scripts "${WEIR_MANUAL}/*/zsh/*")
file(INSTALL DESTINATION "${_data}/zsh/${_zsh}" FILES ${_scripts})
