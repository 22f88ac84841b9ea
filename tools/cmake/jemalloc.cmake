# jemalloc as PkgConfig::jemalloc, for the few programs that use it; no library of ours does.
include_guard(GLOBAL)
find_package(PkgConfig REQUIRED)
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET GLOBAL jemalloc)
