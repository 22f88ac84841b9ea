# The API reference: `cmake --build --preset dev --target reference` writes it to
# build/dev/reference/index.html. Needs Doxygen, as the tests do.
find_program(WEIR_DOXYGEN doxygen)
include("${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake")

set(WEIR_REFERENCE_DIR "${PROJECT_BINARY_DIR}/reference")
set(WEIR_REFERENCE_INPUT "\"${PROJECT_SOURCE_DIR}/docs/reference.dox\"")
foreach(_weir_header IN LISTS WEIR_PUBLIC_HEADERS)
  string(APPEND WEIR_REFERENCE_INPUT " \"${PROJECT_BINARY_DIR}/include/weir/${_weir_header}\"")
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/docs/Doxyfile.in" "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)

if(WEIR_DOXYGEN)
  add_custom_target(
    reference
    COMMAND "${WEIR_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
    DEPENDS weir_installed_headers
    COMMENT "Writing ${WEIR_REFERENCE_DIR}/index.html"
    VERBATIM)
endif()
