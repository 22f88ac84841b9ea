# Collects the parts of weir-gpu. Programs become its commands, suites part of its `test`:
#
#   weir_gpu_command(NAME train PROGRAM weir-train MAIN main.cpp)   after PROGRAM is made and linked
#   weir_test(... LABELS gpu)                                       calls _weir_gpu_suite
#
# weir-gpu takes their objects unchanged. MAIN, the source with the program's main function, is
# compiled again under another name. All suites end up in one program: no two may have a test suite
# of the same name or compile the same helper.

# An interface library, so that packages found only by the calling folder are found again.
function(_weir_gpu_piece name)
  cmake_parse_arguments(ARG "" "" "OBJECTS;DEPS" ${ARGN})
  add_library(${name} INTERFACE)
  target_sources(${name} INTERFACE ${ARG_OBJECTS})
  target_link_libraries(${name} INTERFACE ${ARG_DEPS})
  set_property(GLOBAL APPEND PROPERTY WEIR_GPU_PIECES ${name})
endfunction()

function(_weir_gpu_suite target)
  _weir_gpu_piece(weir_gpu_suite_${target} OBJECTS $<TARGET_OBJECTS:${target}> DEPS ${ARGN})
endfunction()

function(weir_gpu_command)
  cmake_parse_arguments(ARG "" "NAME;PROGRAM;MAIN" "" ${ARGN})
  if(NOT ARG_NAME OR NOT TARGET "${ARG_PROGRAM}" OR NOT ARG_MAIN OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weir_gpu_command: NAME, a target as PROGRAM and MAIN are needed: ${ARGV}")
  endif()

  set_source_files_properties("${ARG_MAIN}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(main weir_gpu_${ARG_NAME}_main)
  add_library(${main} OBJECT EXCLUDE_FROM_ALL "${ARG_MAIN}")
  foreach(kind IN ITEMS CXX_STANDARD_REQUIRED CXX_EXTENSIONS COMPILE_FEATURES COMPILE_DEFINITIONS
                        COMPILE_OPTIONS INCLUDE_DIRECTORIES LINK_LIBRARIES)
    get_target_property(value ${ARG_PROGRAM} ${kind})
    if(NOT value MATCHES "-NOTFOUND$")
      set_property(TARGET ${main} PROPERTY ${kind} ${value})
    endif()
  endforeach()
  target_compile_definitions(${main} PRIVATE main=${main})

  get_filename_component(file "${ARG_MAIN}" NAME)
  string(REPLACE "." "\\." file "${file}")
  get_target_property(libraries ${ARG_PROGRAM} LINK_LIBRARIES)
  _weir_gpu_piece(
    weir_gpu_program_${ARG_NAME}
    OBJECTS
    $<FILTER:$<TARGET_OBJECTS:${ARG_PROGRAM}>,EXCLUDE,/${file}\\.o$>
    $<TARGET_OBJECTS:${main}>
    DEPS
    ${libraries})
  set_property(GLOBAL APPEND PROPERTY WEIR_GPU_COMMANDS ${ARG_NAME})
endfunction()
