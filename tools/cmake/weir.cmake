# Functions that make Weir's targets, so that a folder only lists its sources:
#
#   weir_library(NAME allocator [SOURCES ...] [CUDA_SOURCES ...] [PUBLIC_DEPS ...] [PRIVATE_DEPS ...])
#   weir_room(allocator SOURCES ... [CUDA_SOURCES ...])
#   weir_program(NAME weir-train SOURCES ... [DEPS ...])
#   weir_test(NAME allocator_test SOURCES ... [DEPS ...] [LABELS ...])
#   weir_headers_alone(allocator scheduler ...)
#   weir_checks(tests/fuzz ...)
#
# Nothing here sets a global flag: our compile options are on the target weir_options, which every
# target of ours links privately and no user of the library sees.

set(WEIR_SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}/../..")
cmake_path(NORMAL_PATH WEIR_SOURCE_DIR)
string(REGEX REPLACE "/$" "" WEIR_SOURCE_DIR "${WEIR_SOURCE_DIR}") # which NORMAL_PATH leaves there
set(WEIR_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

add_library(weir_options INTERFACE)
# nvcc passes the host's part of a .cu file, rewritten, to the same compiler. Warnings about the
# rewriting are off there.
set(_weir_warnings -Wall -Wextra)
set(_weir_more_warnings
    -Wpedantic
    -Wshadow
    -Wconversion
    -Wsign-conversion
    -Wnon-virtual-dtor
    -Woverloaded-virtual
    -Wold-style-cast
    -Wcast-align
    -Wextra-semi
    -Wformat=2)
if(WEIR_WERROR)
  list(APPEND _weir_warnings -Werror)
endif()
target_compile_options(
  weir_options
  INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${_weir_warnings};${_weir_more_warnings}>
            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=$<JOIN:${_weir_warnings},$<COMMA>>>")
# Call sites in messages and timelines are paths from the root of the repository.
target_compile_options(
  weir_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${WEIR_SOURCE_DIR}/=>")
if(WEIR_WERROR)
  target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  # These warnings depend on inlining, and GCC 11 to 13 report correct standard library code at -O2
  # and -O3. They stay warnings.
  target_compile_options(
    weir_options
    INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=array-bounds
              -Wno-error=maybe-uninitialized
              -Wno-error=restrict
              -Wno-error=stringop-overflow
              -Wno-error=stringop-overread>)
endif()

# GCC 12 falsely reports the standard library's "text" + std::string: overlapping copies at -O3, and
# a write past the end at either (its bugs 105651 and 105329; 13 has neither).
# tests/project/release_warnings.sh checks for the rest.
set(_weir_gcc_12
    $<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,12>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>
)
target_compile_options(
  weir_options INTERFACE "$<$<AND:${_weir_gcc_12},$<CONFIG:Release>>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow>"
                         "$<$<AND:${_weir_gcc_12},$<CONFIG:RelWithDebInfo>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")

# By default GCC looks for memory that it can free from 256 MiB on, which takes a tenth of its time and
# saves a tenth of its memory. With this it begins at 2 GiB, which our largest source does not reach.
# clang warns of string literals as long as the scripts of our pages are.
target_compile_options(
  weir_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>
                         $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-overlength-strings>)

set(WEIR_DISCOVERY_TIMEOUT 600)  # seconds to list a program's tests; by default 5

if(WEIR_SANITIZE)
  list(JOIN WEIR_SANITIZE "," _weir_sanitizers)
  # Three checks of each pointer are left out: they take a fifth of the compile time. The address sanitizer stops where
  # a null pointer is read or written, too; nothing tells of a reference bound to one, or of a cast to a wrong class.
  set(_weir_sanitize -fsanitize=${_weir_sanitizers} -fno-sanitize=null,vptr,object-size -fno-sanitize-recover=all
                     -fno-omit-frame-pointer)
  target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${_weir_sanitize}>)
  target_link_options(weir_options INTERFACE -fsanitize=${_weir_sanitizers})
endif()

# Refuses unknown words in a call: a misspelt keyword would drop its sources.
function(_weir_check_arguments function name sources unparsed)
  if(NOT name OR NOT sources)
    message(FATAL_ERROR "${function}: NAME and at least one of SOURCES are needed (NAME '${name}')")
  endif()
  if(unparsed)
    message(FATAL_ERROR "${function}(NAME ${name}): what is '${unparsed}'?")
  endif()
endfunction()

function(_weir_configure target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:weir_options>)
endfunction()

# What most sources include of the standard library, compiled once for all static libraries: a fifth less to
# compile. A source includes what it uses all the same: clang-tidy reads without them what has changed.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "")
add_library(weir_standard_headers OBJECT "${PROJECT_BINARY_DIR}/precompiled.cpp")
_weir_configure(weir_standard_headers)
set_target_properties(weir_standard_headers PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_COMPILE_COMMANDS OFF)
target_precompile_headers(
  weir_standard_headers
  PRIVATE
  <algorithm>
  <array>
  <atomic>
  <charconv>
  <chrono>
  <cmath>
  <condition_variable>
  <cstdint>
  <deque>
  <filesystem>
  <fstream>
  <functional>
  <map>
  <memory>
  <mutex>
  <optional>
  <span>
  <sstream>
  <string>
  <string_view>
  <thread>
  <unordered_map>
  <utility>
  <variant>
  <vector>)

# Has some sources compiled at once, eight by default, in units of one folder each: of a library a program takes the
# units that it needs, and all that these need. What calls CUDA is compiled by itself, so that a program that
# needs nothing of it takes no runtime of CUDA.
function(_weir_units target)
  set(sources ${ARGN})
  list(FILTER sources EXCLUDE REGEX "_cuda\\.cpp$|\\.cu$")
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(size 8)
  if(CMAKE_UNITY_BUILD_BATCH_SIZE GREATER 0)
    set(size ${CMAKE_UNITY_BUILD_BATCH_SIZE})
  endif()
  set(count 0)
  foreach(source IN LISTS sources)
    math(EXPR unit "${count} / ${size}")
    math(EXPR count "${count} + 1")
    set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# A static library weir_NAME, with the alias weir::NAME. Its headers are included by their path from
# the root: "allocator/pool.hpp". CUDA_SOURCES need a toolkit. A library without its own sources
# gets them from rooms.
function(weir_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;CUDA_SOURCES;PUBLIC_DEPS;PRIVATE_DEPS" ${ARGN})
  _weir_check_arguments(weir_library "${ARG_NAME}" from_rooms "${ARG_UNPARSED_ARGUMENTS}")

  set(target weir_${ARG_NAME})
  if(NOT WEIR_HAS_CUDA_TOOLKIT)
    set(ARG_CUDA_SOURCES)
  endif()
  add_library(${target} STATIC ${ARG_SOURCES} ${ARG_CUDA_SOURCES})
  _weir_units(${target} ${ARG_SOURCES} ${ARG_CUDA_SOURCES})
  add_library(weir::${ARG_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${ARG_NAME} POSITION_INDEPENDENT_CODE ON)
  _weir_configure(${target})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${WEIR_SOURCE_DIR}>
                                              $<BUILD_INTERFACE:${WEIR_GENERATED_DIR}>)
  target_link_libraries(
    ${target}
    PUBLIC Threads::Threads ${ARG_PUBLIC_DEPS}
    PRIVATE ${ARG_PRIVATE_DEPS})
  target_precompile_headers(${target} REUSE_FROM weir_standard_headers)
  set_property(GLOBAL APPEND PROPERTY WEIR_LIBRARIES ${target})
endfunction()

# Adds the sources of the calling folder, a room, to the library weir_LIBRARY. The first lines of
# the folder's CMakeLists.txt say what lives there, and a line "May include:" which headers it may
# include (checked by tests/project/layers.py).
function(weir_room library)
  cmake_parse_arguments(ARG "" "" "SOURCES;CUDA_SOURCES" ${ARGN})
  _weir_check_arguments("weir_room" ${library} "${ARG_SOURCES}${ARG_CUDA_SOURCES}" "${ARG_UNPARSED_ARGUMENTS}")
  _weir_units(weir_${library} ${ARG_SOURCES} ${ARG_CUDA_SOURCES})
  target_sources(weir_${library} PRIVATE ${ARG_SOURCES})
  if(WEIR_HAS_CUDA_TOOLKIT)
    target_sources(weir_${library} PRIVATE ${ARG_CUDA_SOURCES})
  endif()
endfunction()

# A program, built into the build directory's counterpart of the calling folder.
function(weir_program)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPS" ${ARGN})
  _weir_check_arguments(weir_program "${ARG_NAME}" "${ARG_SOURCES}" "${ARG_UNPARSED_ARGUMENTS}")

  add_executable(${ARG_NAME} ${ARG_SOURCES})
  _weir_configure(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
endfunction()

# A GoogleTest program, each of whose tests is a test of ctest. With the label gpu it needs a GPU: the test
# presets exclude it, and it becomes part of weir-gpu. The only limit of time of all tests is the presets':
# it ends hangs, and is far from what a busy machine needs.
#
# Under a sanitizer a process takes a quarter of a second to start and to look for leaks, which for most tests
# is longer than the test. There a program is one test, except with A_PROCESS_EACH, whose tests change what a
# process has once, as the settings of the swap-in.
function(weir_test)
  cmake_parse_arguments(ARG "A_PROCESS_EACH" "NAME" "SOURCES;DEPS;LABELS" ${ARGN})
  _weir_check_arguments(weir_test "${ARG_NAME}" "${ARG_SOURCES}" "${ARG_UNPARSED_ARGUMENTS}")
  # Sanitizers do not support a GPU's driver, and the same suites run on the stand-in.
  if(WEIR_SANITIZE AND gpu IN_LIST ARG_LABELS)
    return()
  endif()

  add_executable(${ARG_NAME} ${ARG_SOURCES})
  _weir_configure(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE weir_test_support weir_test_process ${ARG_DEPS}
                                            GTest::gmock GTest::gtest_main)
  target_compile_options(${ARG_NAME} PRIVATE ${WEIR_TEST_OPTIONS})
  target_precompile_headers(${ARG_NAME} REUSE_FROM weir_test_headers)
  if("gpu" IN_LIST ARG_LABELS)
    _weir_gpu_suite(${ARG_NAME} weir_test_support ${ARG_DEPS} GTest::gmock)
    set_target_properties(${ARG_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(checks ${ARG_NAME})
  endif()

  if(WEIR_SANITIZE AND NOT ARG_A_PROCESS_EACH)
    add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
    return()
  endif()
  gtest_discover_tests(
    ${ARG_NAME}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT ${WEIR_DISCOVERY_TIMEOUT})

  # ctest reads this after it has discovered the tests: a program without tests is a test that
  # fails. Labels are set here because discovery keeps only the first of a list.
  set(tests "\${${ARG_NAME}_TESTS}")
  set(after "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}_after.cmake")
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}")
  file(CONFIGURE OUTPUT "${after}" @ONLY CONTENT "if(NOT EXISTS \"@program@\")
  set_tests_properties(@ARG_NAME@_NOT_BUILT PROPERTIES LABELS \"@ARG_LABELS@\")
elseif(NOT @ARG_NAME@_TESTS)
  add_test(@ARG_NAME@_HAS_NO_TESTS @ARG_NAME@_HAS_NO_TESTS)
elseif(NOT \"@ARG_LABELS@\" STREQUAL \"\")
  set_tests_properties(@tests@ PROPERTIES LABELS \"@ARG_LABELS@\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${after}")
endfunction()

# Adds folders whose tests say nothing of what Weir does: pages, packages, models, fuzzers, benchmarks' smoke runs.
# Their tests have the label checks, which the test preset dev leaves out, and only the target checks builds
# them, so that `tools/test` does neither.
add_custom_target(checks)
function(weir_checks)
  set(CMAKE_DIRECTORY_LABELS checks)
  foreach(folder IN LISTS ARGN)
    add_subdirectory(${folder} EXCLUDE_FROM_ALL)
    _weir_targets_below("${CMAKE_CURRENT_SOURCE_DIR}/${folder}" targets)
    if(targets)
      add_dependencies(checks ${targets})
    endif()
  endforeach()
endfunction()

# What is made in a folder and below it.
function(_weir_targets_below folder result)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(inner_folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS inner_folders)
    _weir_targets_below("${inner}" more)
    list(APPEND targets ${more})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

# Whether a source of the header's name includes it first. Then the header compiles alone:
# tools/lint lets clang-tidy read each source by itself.
function(_weir_header_has_source header result)
  set(${result} FALSE PARENT_SCOPE)
  string(REGEX REPLACE "\\.hpp$" ".cpp" source "${WEIR_SOURCE_DIR}/${header}")
  if(NOT EXISTS "${source}")
    return()
  endif()
  file(STRINGS "${source}" first LIMIT_COUNT 1 REGEX "^#include")
  if(first STREQUAL "#include \"${header}\"")
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Compiles each header of the given folders that no source of the same name includes first, in a
# file that includes it twice and nothing else, so that headers do not depend on earlier includes.
# Headers named *_cuda.hpp need CUDA, and those of kernels/ are left out: they are for device code.
# Call it after the libraries, whose public dependencies the headers may include, are made.
function(weir_headers_alone)
  set(headers allocator/base/version.hpp)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE "${WEIR_SOURCE_DIR}"
         "${WEIR_SOURCE_DIR}/${folder}/*.hpp")
    list(APPEND headers ${found})
  endforeach()
  list(FILTER headers EXCLUDE REGEX "^kernels/.*_cuda\\.hpp$")
  if(NOT WEIR_HAS_CUDA_TOOLKIT)
    list(FILTER headers EXCLUDE REGEX "_cuda\\.hpp$")
  endif()

  set(sources)
  foreach(header IN LISTS headers)
    _weir_header_has_source(${header} has_source)
    if(has_source)
      continue()
    endif()
    set(source "${PROJECT_BINARY_DIR}/headers_alone/${header}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND sources "${source}")
  endforeach()

  get_property(libraries GLOBAL PROPERTY WEIR_LIBRARIES)
  add_library(weir_headers_alone OBJECT EXCLUDE_FROM_ALL ${sources})
  add_dependencies(checks weir_headers_alone)
  _weir_configure(weir_headers_alone)
  target_link_libraries(weir_headers_alone PRIVATE ${libraries})
  target_compile_options(weir_headers_alone PRIVATE -O0 -g0)
  set_target_properties(weir_headers_alone PROPERTIES EXPORT_COMPILE_COMMANDS OFF UNITY_BUILD OFF)
endfunction()
