# Copies the public headers, and those of ours that they include, to the folder that is installed:
#
#   cmake -D SOURCE_DIR=... -D GENERATED_DIR=... -D DESTINATION=build/dev/include/weir
#         -P collect_headers.cmake
#
# In the tree a header is "allocator/pool.hpp", in a copy "weir/allocator/pool.hpp": an installed
# folder named allocator on the include path could clash with other libraries. A copy also refuses C++ older
# than 20 in one line: a compiler that reads on after #error would print many more about what it does not know.
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake")

set(guard "#pragma once
#if __cplusplus <= 201703L
#ifndef WEIR_NEEDS_CXX20
#define WEIR_NEEDS_CXX20
#error \"Weir needs C++20: compile with -std=c++20\"
#endif
#else
")

file(REMOVE_RECURSE "${DESTINATION}")
set(pending ${WEIR_PUBLIC_HEADERS})
set(seen ${WEIR_PUBLIC_HEADERS})
while(pending)
  list(POP_FRONT pending header)
  set(path "${SOURCE_DIR}/${header}")
  if(NOT EXISTS "${path}")
    set(path "${GENERATED_DIR}/${header}")
  endif()
  file(READ "${path}" text)

  set(ours "#include \"((allocator|scheduler)/[^\"]+)\"")
  string(REGEX MATCHALL "${ours}" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "${ours}" "\\1" included "${include}")
    if(NOT included IN_LIST seen)
      list(APPEND seen "${included}")
      list(APPEND pending "${included}")
    endif()
  endforeach()
  if(text MATCHES "#include \"(kernels|trainer)/")
    message(FATAL_ERROR "${header} is to be installed and includes what is not: ${CMAKE_MATCH_0}")
  endif()

  string(REGEX REPLACE "${ours}" "#include \"weir/\\1\"" text "${text}")
  string(REPLACE "#pragma once\n" "${guard}" guarded "${text}")
  if(guarded STREQUAL text)
    message(FATAL_ERROR "${header} has no line '#pragma once', after which the check for C++20 stands")
  endif()
  file(WRITE "${DESTINATION}/${header}" "${guarded}#endif  // C++20\n")
endwhile()
