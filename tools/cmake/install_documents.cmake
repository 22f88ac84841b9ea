# Installs the pages and what they show. Run by `cmake --install` and cpack; package.cmake sets:
#
#   WEIR_SOURCE      the source tree
#   WEIR_SCRATCH     a folder in which pages are changed before they are installed
#   WEIR_DOCUMENTS   the folder of the installed pages, below the prefix
#   WEIR_DATA        share
#
# In an installed page, paths are installed ones, and a link to a source, which is not installed, is
# its text alone.
set(_sources allocator|bench|kernels|scheduler|tests|tools|trainer)
set(_data "${CMAKE_INSTALL_PREFIX}/${WEIR_DATA}")

# Programs that are not on the PATH and that pages for users name.
file(INSTALL DESTINATION "${_data}/weir" USE_SOURCE_PERMISSIONS
     FILES "${WEIR_SOURCE}/tools/replay/read/snapshot_to_csv.py" "${WEIR_SOURCE}/tools/replay/read/lifetimes.py")

# A folder of its own: two installations may run at once.
string(RANDOM LENGTH 12 _ready)
set(_ready "${WEIR_SCRATCH}/${_ready}")
file(
  GLOB_RECURSE _files
  RELATIVE "${WEIR_SOURCE}"
  "${WEIR_SOURCE}/docs/*.md" "${WEIR_SOURCE}/docs/*.json" "${WEIR_SOURCE}/docs/*.png" "${WEIR_SOURCE}/docs/*.svg")
file(
  GLOB _top
  RELATIVE "${WEIR_SOURCE}"
  "${WEIR_SOURCE}/*.md" "${WEIR_SOURCE}/LICENSE" "${WEIR_SOURCE}/CITATION.cff")
foreach(_file IN LISTS _files _top)
  set(_from "${WEIR_SOURCE}/${_file}")
  if(_file MATCHES "\\.md$")
    file(READ "${_from}" _text)
    string(REGEX REPLACE "\\[([^][]*)\\]\\((\\.\\./)*(${_sources})/[^)]*\\)" "\\1" _text "${_text}")
    string(REGEX REPLACE "build/release(-demo)?/(trainer|tools/weir)/weir" "weir" _text "${_text}")
    string(REPLACE "tools/replay/read/snapshot_to_csv.py" "${_data}/weir/snapshot_to_csv.py" _text "${_text}")
    set(_from "${_ready}/${_file}")
    file(WRITE "${_from}" "${_text}")
  endif()
  get_filename_component(_folder "${CMAKE_INSTALL_PREFIX}/${WEIR_DOCUMENTS}/${_file}" DIRECTORY)
  file(INSTALL DESTINATION "${_folder}" FILES "${_from}")
endforeach()
file(REMOVE_RECURSE "${_ready}")
