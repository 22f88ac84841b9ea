# Determines what of CUDA there is to build with, in two levels. Sets
#
#   WEIR_HAS_CUDA_HEADERS  CUDA's headers are there: enough for libweir.so, the plugs for PyTorch and the
#                          stand-in driver, which link nothing of CUDA
#   WEIR_HAS_CUDA_TOOLKIT  a toolkit is there, too: for kernels, which nvcc compiles, and for what links
#                          the CUDA runtime
#   WEIR_CUDA_NOTE         one line for people: what is built and what is left out, and why
#
# and, with headers,
#
#   WEIR_CUDA_INCLUDE_DIRS, WEIR_CUDA_INCLUDE_DIR   their folders, and that of cuda.h
#   WEIR_CUDA_VERSION, WEIR_CUDA_MAJOR              for CUDA 13.0: 13000 and 13
#   weir_cuda_headers                               a target: the headers
#
# The target weir_cudart is always there: as much of the headers and the CUDA runtime as there is. A
# program with the property WEIR_STANDIN gets the stand-in of tests/standin instead of the toolkit's.
set(WEIR_CUDA
    AUTO
    CACHE STRING "CUDA parts: AUTO (what can be built), HEADERS (fails without libweir.so), ON (fails without a toolkit) or OFF")
set_property(CACHE WEIR_CUDA PROPERTY STRINGS AUTO HEADERS ON OFF)
set(WEIR_CUDA_HEADERS
    ""
    CACHE PATH "The folder of cuda.h, where there is no toolkit; empty: in the Python packages of the build")
set(_weir_least_cuda 12.0)

# The Python whose packages a build may use: the one that builds a wheel, for which pyproject.toml asks for
# them, otherwise the one for which tools/setup installs them.
set(WEIR_BUILD_PYTHON "${PROJECT_SOURCE_DIR}/build/packaging/bin/python")
if(SKBUILD)
  set(WEIR_BUILD_PYTHON "${Python3_EXECUTABLE}")
elseif(NOT EXISTS "${WEIR_BUILD_PYTHON}")
  set(WEIR_BUILD_PYTHON python3)
endif()

# Sets WEIR_HAS_CUDA_TOOLKIT, and _weir_no_toolkit: why not.
macro(_weir_find_toolkit)
  find_package(CUDAToolkit QUIET)
  include(CheckLanguage)
  if(NOT CUDAToolkit_FOUND)
    set(_weir_no_toolkit "no CUDA toolkit was found (nvcc on the PATH, or CUDAToolkit_ROOT)")
  elseif(CUDAToolkit_VERSION VERSION_LESS _weir_least_cuda)
    set(_weir_no_toolkit
        "the toolkit in ${CUDAToolkit_BIN_DIR} is ${CUDAToolkit_VERSION}, and ${_weir_least_cuda} or later is needed")
  else()
    # What is shipped, and what a machine with a GPU builds: machine code for 8.0 and 9.0, and PTX, which later
    # devices compile. Without a GPU machine code for 8.0 and PTX, half of nvcc's time: all devices run that too.
    # Sanitizers check the host's side, for which machine code is a waste of time.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      if(WEIR_SANITIZE)
        set(CMAKE_CUDA_ARCHITECTURES 80-virtual)
      elseif(SKBUILD OR CMAKE_BUILD_TYPE STREQUAL "Release" OR EXISTS /dev/nvidiactl)
        set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
      else()
        set(CMAKE_CUDA_ARCHITECTURES 80)
      endif()
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      set(WEIR_HAS_CUDA_TOOLKIT TRUE)
    else()
      set(_weir_no_toolkit "nvcc in ${CUDAToolkit_BIN_DIR} does not compile")
    endif()
  endif()
endmacro()

# Takes the headers in the given folders, unless some are missing or too old.
macro(_weir_take_headers)
  set(_weir_complete TRUE)
  foreach(_weir_header IN ITEMS crt/host_defines.h cuda_runtime_api.h cudaTypedefs.h nvtx3/nvToolsExt.h cuda.h)
    find_file(_weir_found_header ${_weir_header} PATHS ${ARGN} NO_DEFAULT_PATH NO_CACHE)
    if(NOT _weir_found_header)
      set(_weir_complete FALSE)
      break()
    endif()
    if(_weir_header STREQUAL "cuda.h")
      file(STRINGS "${_weir_found_header}" _weir_version REGEX "^#define CUDA_VERSION [0-9]+")
      get_filename_component(_weir_folder_of_cuda_h "${_weir_found_header}" DIRECTORY)
    endif()
    unset(_weir_found_header)
  endforeach()
  unset(_weir_found_header)
  if(_weir_complete AND _weir_version MATCHES "CUDA_VERSION ([0-9]+)")
    set(WEIR_CUDA_VERSION ${CMAKE_MATCH_1})
    math(EXPR WEIR_CUDA_MAJOR "${WEIR_CUDA_VERSION} / 1000")
    math(EXPR WEIR_CUDA_MINOR "${WEIR_CUDA_VERSION} % 1000 / 10")
    if("${WEIR_CUDA_MAJOR}.${WEIR_CUDA_MINOR}" VERSION_GREATER_EQUAL _weir_least_cuda)
      set(WEIR_HAS_CUDA_HEADERS TRUE)
      set(WEIR_CUDA_INCLUDE_DIRS ${ARGN})
      set(WEIR_CUDA_INCLUDE_DIR "${_weir_folder_of_cuda_h}")
    endif()
  endif()
endmacro()

# Takes those of the packages nvidia-cuda-runtime, nvidia-cuda-crt and nvidia-nvtx.
macro(_weir_take_headers_of_packages)
  execute_process(
    COMMAND "${WEIR_BUILD_PYTHON}" -c "import nvidia; print(*nvidia.__path__, sep=';')"
    OUTPUT_VARIABLE _weir_packages RESULT_VARIABLE _weir_ignored ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(TRANSFORM _weir_packages APPEND "/cu*/include")
  file(GLOB _weir_folders LIST_DIRECTORIES TRUE ${_weir_packages})
  foreach(_weir_folder IN LISTS _weir_folders)
    if(NOT WEIR_HAS_CUDA_HEADERS)
      _weir_take_headers("${_weir_folder}")
    endif()
  endforeach()
endmacro()

set(WEIR_HAS_CUDA_TOOLKIT FALSE)
set(WEIR_HAS_CUDA_HEADERS FALSE)
if(WEIR_CUDA)
  _weir_find_toolkit()
  if(WEIR_HAS_CUDA_TOOLKIT)
    _weir_take_headers(${CUDAToolkit_INCLUDE_DIRS})
  elseif(WEIR_CUDA_HEADERS)
    _weir_take_headers(${WEIR_CUDA_HEADERS})
  else()
    _weir_take_headers_of_packages()
  endif()
endif()

if(NOT WEIR_CUDA)
  set(WEIR_CUDA_NOTE "left out: WEIR_CUDA is ${WEIR_CUDA}")
elseif(WEIR_HAS_CUDA_TOOLKIT)
  set(WEIR_CUDA_NOTE "built with the toolkit ${CUDAToolkit_VERSION} in ${CUDAToolkit_BIN_DIR}")
elseif(WEIR_HAS_CUDA_HEADERS)
  set(WEIR_CUDA_NOTE
      "libweir.so and plugs are built, with the headers of ${WEIR_CUDA_MAJOR}.${WEIR_CUDA_MINOR} in ${WEIR_CUDA_INCLUDE_DIRS}; weir-train and libweir-core are for the CPU alone, because ${_weir_no_toolkit}")
else()
  set(_weir_no_headers "none of CUDA's headers, which tools/setup installs (or -DWEIR_CUDA_HEADERS=DIR)")
  if(WEIR_CUDA_HEADERS)
    set(_weir_no_headers "not all of CUDA's headers of ${_weir_least_cuda} or later in ${WEIR_CUDA_HEADERS}")
  endif()
  set(WEIR_CUDA_NOTE "left out: ${_weir_no_toolkit}, and ${_weir_no_headers}")
endif()
if((WEIR_CUDA STREQUAL "ON" AND NOT WEIR_HAS_CUDA_TOOLKIT) OR (WEIR_CUDA STREQUAL "HEADERS" AND NOT WEIR_HAS_CUDA_HEADERS))
  message(FATAL_ERROR " CUDA: ${WEIR_CUDA_NOTE}; to build without: -DWEIR_CUDA=OFF")  # the space: in one line
endif()
message(STATUS "CUDA: ${WEIR_CUDA_NOTE}")
file(WRITE "${PROJECT_BINARY_DIR}/cuda_note.txt" "${WEIR_CUDA_NOTE}\n")

add_library(weir_cudart INTERFACE)
if(WEIR_HAS_CUDA_HEADERS)
  add_library(weir_cuda_headers INTERFACE)
  target_include_directories(weir_cuda_headers SYSTEM INTERFACE ${WEIR_CUDA_INCLUDE_DIRS})
  target_link_libraries(weir_cudart INTERFACE weir_cuda_headers)
endif()
if(NOT WEIR_HAS_CUDA_TOOLKIT)
  return()
endif()

target_link_libraries(
  weir_cudart INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:WEIR_STANDIN>>,weir_standin_cudart,CUDA::cudart_static>)
enable_language(CUDA)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # weir_cudart says which
# nvcc supports C++20 from 12.0 on; CMake up to 3.25 does not know it.
foreach(kind IN ITEMS STANDARD EXTENSION)
  if(NOT DEFINED CMAKE_CUDA20_${kind}_COMPILE_OPTION)
    set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
  endif()
endforeach()
