# jemalloc as PkgConfig::jemalloc, for the few programs that use it; no library of ours does.
include_guard(GLOBAL)
find_package(PkgConfig REQUIRED)
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET GLOBAL jemalloc)
if(WEIR_PORTABLE)
  weir_find_archive(_weir_jemalloc libjemalloc_pic.a PACKAGE libjemalloc-dev NEAR
                    "${jemalloc_LINK_LIBRARIES}")
  set_target_properties(PkgConfig::jemalloc PROPERTIES INTERFACE_LINK_LIBRARIES
                                                       "${_weir_jemalloc};m;${CMAKE_DL_LIBS}")
endif()
