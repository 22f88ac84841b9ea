# jemalloc as PkgConfig::jemalloc, for the benchmarks, which compare with it. Nothing that ships uses it.
include_guard(GLOBAL)
find_package(PkgConfig REQUIRED)
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET GLOBAL jemalloc)
