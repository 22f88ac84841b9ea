# WEIR_PUBLIC_HEADERS: the headers that users include and the reference documents completely, marked by a
# line "/// @file". Other headers are installed only if one of these includes them, and may change in any
# version. Those that need the toolkit's headers are installed by a build that has a toolkit.
get_filename_component(_weir_public_root "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
file(GLOB_RECURSE _weir_public_candidates RELATIVE "${_weir_public_root}"
     "${_weir_public_root}/allocator/*.hpp" "${_weir_public_root}/allocator/*.hpp.in"
     "${_weir_public_root}/scheduler/*.hpp")
set(WEIR_PUBLIC_HEADERS)
foreach(_weir_candidate IN LISTS _weir_public_candidates)
  file(STRINGS "${_weir_public_root}/${_weir_candidate}" _weir_marked LIMIT_COUNT 1 REGEX "^/// @file$")
  if(_weir_marked AND (WEIR_HAS_CUDA_TOOLKIT OR NOT _weir_candidate MATCHES "_cuda\\.hpp$"))
    string(REGEX REPLACE "\\.in$" "" _weir_candidate "${_weir_candidate}")
    list(APPEND WEIR_PUBLIC_HEADERS "${_weir_candidate}")
  endif()
endforeach()
