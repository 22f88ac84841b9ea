# Writes the commit of SOURCE_DIR to OUTPUT, unless it has not changed.
cmake_minimum_required(VERSION 3.22)
find_package(Git QUIET)
set(commit unknown)
if(GIT_EXECUTABLE)
  execute_process(
    COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE_DIR}" describe --always --dirty
    OUTPUT_VARIABLE described
    RESULT_VARIABLE status
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0)
    set(commit "${described}")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "#pragma once

namespace weir::gpu_check {

inline constexpr const char* kCommit = \"@commit@\";

}  // namespace weir::gpu_check
")
