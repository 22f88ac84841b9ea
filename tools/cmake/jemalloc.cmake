# jemalloc as PkgConfig::jemalloc, a peer in the benchmarks. Nothing that ships uses it.
include_guard(GLOBAL)
find_package(PkgConfig REQUIRED)
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET GLOBAL jemalloc)
