# Installs the pages and what they show. Run by `cmake --install` and cpack; package.cmake sets:
#
#   WEIR_SOURCE      the source tree
#   WEIR_SCRATCH     a folder in which pages are changed before they are installed
#   WEIR_DOCUMENTS   the folder of the installed pages, below the prefix or absolute
#   WEIR_DATA        share, below the prefix or absolute
#   WEIR_NAMED_DATA  how pages name it; its path, unless given
#
# In an installed page, paths are installed ones, and a link to a source, which is not installed, is
# its text alone. A page that still names what is not installed says so below its title.
cmake_policy(VERSION 3.22)
set(_sources allocator bench kernels scheduler tests tools trainer)
list(JOIN _sources "|" _any_source)
cmake_path(ABSOLUTE_PATH WEIR_DATA BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE _data)
cmake_path(ABSOLUTE_PATH WEIR_DOCUMENTS BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE _documents)
if(NOT DEFINED WEIR_NAMED_DATA)
  set(WEIR_NAMED_DATA "${_data}")
endif()

# Programs that are not on the PATH and that pages for users name: in the folders of the source tree.
file(INSTALL DESTINATION "${_data}/weir" USE_SOURCE_PERMISSIONS FILES
     "${WEIR_SOURCE}/tools/replay/read/snapshot_to_csv.py")
file(GLOB _plug RELATIVE "${WEIR_SOURCE}" "${WEIR_SOURCE}/tools/torch/plug/*.[ch]pp" "${WEIR_SOURCE}/tools/torch/books/*.hpp")
foreach(_file IN LISTS _plug ITEMS tools/torch/build tools/preload/borders/weir.h)
  get_filename_component(_folder "${_file}" DIRECTORY)
  file(INSTALL DESTINATION "${_data}/weir/${_folder}" USE_SOURCE_PERMISSIONS FILES "${WEIR_SOURCE}/${_file}")
endforeach()

# Changes the text of page `file` in the variable `text`.
function(_weir_install_paths file text)
  set(changed "${${text}}")
  set(left_out "${_any_source}")
  if(NOT EXISTS "${WEIR_SOURCE}/docs/results")  # as in the sdist
    string(APPEND left_out "|docs/results|results")
  endif()
  # What is installed elsewhere, then a source by its name or folder, then one by other words.
  string(REGEX REPLACE "\\[([^][]*)\\]\\([./]*tools/preload/borders/(weir\\.h|cuda_resource\\.hpp)\\)" "\\1" changed
                       "${changed}")
  set(link "\\]\\((\\.\\./)*((${left_out})/[^)#]*)[^)]*\\)")
  string(REGEX REPLACE "\\[`?[A-Za-z0-9_]+\\.[a-z]+`?${link}" "`\\2`" changed "${changed}")
  string(REGEX REPLACE "\\[[a-z_]+/[a-z_/]+${link}" "`\\2`" changed "${changed}")
  string(REGEX REPLACE "\\[([^][]*)${link}" "\\1 (`\\3`)" changed "${changed}")
  string(REGEX REPLACE "build/release(-demo)?/(trainer|tools/weir)/weir" "weir" changed "${changed}")
  string(REPLACE "tools/replay/read/snapshot_to_csv.py" "${WEIR_NAMED_DATA}/weir/snapshot_to_csv.py" changed
                 "${changed}")
  # Elsewhere it is a command for a clone, with defaults of a clone.
  if(file STREQUAL "docs/packages.md")
    string(REPLACE "tools/torch/build" "${WEIR_NAMED_DATA}/weir/tools/torch/build" changed "${changed}")
  endif()

  # Where a program was, as reports of timelines say, is no path to follow.
  string(REGEX REPLACE "[a-z_/]+\\.cpp:[0-9]+" "" searched "${changed}")
  string(REGEX MATCHALL "docs/[a-z/_]+\\.(jitter|py|sh|txt)" named "${searched}")
  foreach(folder IN LISTS _sources)
    if(searched MATCHES "(^|[^A-Za-z0-9_./-])${folder}/[a-z]")
      list(APPEND named "${folder}/")
    endif()
  endforeach()
  if(searched MATCHES "(^|[^A-Za-z0-9_./-])build/(bench|dev|portable|rehearsal|release)")
    list(APPEND named "build/")
  endif()
  string(REGEX MATCHALL "weir-(bench|gpu|peers|simulate|stress)" programs "${searched}")
  list(APPEND named ${programs})
  if(named)
    list(REMOVE_DUPLICATES named)
    list(SORT named)
    list(JOIN named "`, `" named)
    string(REGEX REPLACE "^(# [^\n]*\n)" "\\1\n*Only in a clone, not installed: `${named}`.*\n" changed "${changed}")
  endif()
  set(${text} "${changed}" PARENT_SCOPE)
endfunction()

# A folder of its own: two installations may run at once.
string(RANDOM LENGTH 12 _ready)
set(_ready "${WEIR_SCRATCH}/${_ready}")
file(
  GLOB_RECURSE _files
  RELATIVE "${WEIR_SOURCE}"
  "${WEIR_SOURCE}/docs/*.md" "${WEIR_SOURCE}/docs/*.json" "${WEIR_SOURCE}/docs/*.png" "${WEIR_SOURCE}/docs/*.svg")
list(REMOVE_ITEM _files docs/pictures/measured.json)
file(
  GLOB _top
  RELATIVE "${WEIR_SOURCE}"
  "${WEIR_SOURCE}/*.md" "${WEIR_SOURCE}/LICENSE" "${WEIR_SOURCE}/CITATION.cff")
foreach(_file IN LISTS _files _top)
  set(_from "${WEIR_SOURCE}/${_file}")
  if(_file MATCHES "\\.md$")
    file(READ "${_from}" _text)
    _weir_install_paths("${_file}" _text)
    set(_from "${_ready}/${_file}")
    file(WRITE "${_from}" "${_text}")
  endif()
  get_filename_component(_folder "${_documents}/${_file}" DIRECTORY)
  file(INSTALL DESTINATION "${_folder}" FILES "${_from}")
endforeach()
file(REMOVE_RECURSE "${_ready}")
