# Determines whether the CUDA parts are built, and with which toolkit. Sets
#
#   WEIR_HAS_CUDA   true or false
#   WEIR_CUDA_NOTE  one line for people: which toolkit, or why there are no CUDA parts
#
# and, if true, makes these targets:
#
#   weir_cuda_headers  the toolkit's headers
#   weir_cudart        the CUDA runtime. A program with the property WEIR_STANDIN gets the
#                      stand-in of tests/standin instead of the toolkit's
set(WEIR_CUDA
    AUTO
    CACHE STRING "Build the CUDA parts: AUTO (with a toolkit of at least 12.0), ON or OFF")
set_property(CACHE WEIR_CUDA PROPERTY STRINGS AUTO ON OFF)
set(_weir_least_cuda 12.0)

set(WEIR_HAS_CUDA FALSE)
if(NOT WEIR_CUDA)
  set(WEIR_CUDA_NOTE "left out: WEIR_CUDA is ${WEIR_CUDA}")
else()
  find_package(CUDAToolkit QUIET)
  include(CheckLanguage)
  if(NOT CUDAToolkit_FOUND)
    set(WEIR_CUDA_NOTE "left out: no CUDA toolkit was found (nvcc on the PATH, or CUDAToolkit_ROOT)")
  elseif(CUDAToolkit_VERSION VERSION_LESS _weir_least_cuda)
    set(WEIR_CUDA_NOTE
        "left out: the toolkit in ${CUDAToolkit_BIN_DIR} is ${CUDAToolkit_VERSION}, and ${_weir_least_cuda} or later is needed"
    )
  else()
    # Machine code for 8.0 and 9.0, and PTX, which later devices compile.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
      # Sanitizers check the host's side, for which machine code is a waste of time.
      if(WEIR_SANITIZE)
        set(CMAKE_CUDA_ARCHITECTURES 90-virtual)
      endif()
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      set(WEIR_HAS_CUDA TRUE)
      set(WEIR_CUDA_NOTE "built with the toolkit ${CUDAToolkit_VERSION} in ${CUDAToolkit_BIN_DIR}")
    else()
      set(WEIR_CUDA_NOTE "left out: nvcc in ${CUDAToolkit_BIN_DIR} does not compile")
    endif()
  endif()
  if(WEIR_CUDA STREQUAL "ON" AND NOT WEIR_HAS_CUDA)
    message(FATAL_ERROR "CUDA: ${WEIR_CUDA_NOTE}")
  endif()
endif()
message(STATUS "CUDA: ${WEIR_CUDA_NOTE}")
file(WRITE "${PROJECT_BINARY_DIR}/cuda_note.txt" "${WEIR_CUDA_NOTE}\n")

if(NOT WEIR_HAS_CUDA)
  return()
endif()

enable_language(CUDA)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # weir_cudart says which
# nvcc supports C++20 from 12.0 on; CMake up to 3.25 does not know it.
foreach(kind IN ITEMS STANDARD EXTENSION)
  if(NOT DEFINED CMAKE_CUDA20_${kind}_COMPILE_OPTION)
    set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
  endif()
endforeach()

add_library(weir_cuda_headers INTERFACE)
target_include_directories(weir_cuda_headers SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})

add_library(weir_cudart INTERFACE)
target_link_libraries(
  weir_cudart
  INTERFACE weir_cuda_headers
            $<IF:$<BOOL:$<TARGET_PROPERTY:WEIR_STANDIN>>,weir_standin_cudart,CUDA::cudart_static>)
