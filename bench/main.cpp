// weir-bench: the benchmarks, with Google Benchmark's flags and --wide. Usually called by
// bench/run.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "bench/shared/jemalloc.hpp"
#include "bench/shared/table.hpp"
#include "kernels/blas/blas.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/standard_streams.hpp"

namespace {

/// Takes --wide out of the words of `main`, whose others are Google Benchmark's.
bool take_wide(int& argc, char** argv) {
  char** const end = std::remove_if(
      argv, argv + argc, [](const char* word) { return std::string_view(word) == "--wide"; });
  const bool found = end != argv + argc;
  argc = static_cast<int>(end - argv);
  argv[argc] = nullptr;
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace weir::bench;
  weir::hold_standard_streams();
  weir::fail_unprinted_at_exit();
  if (const auto columns = weir::terminal_columns()) weir::fit_reports_to(*columns);
  const bool wide = take_wide(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (!Jemalloc::is_apart()) {
    std::fprintf(stderr, "weir-bench: jemalloc has taken the place of malloc in this program\n");
    return 1;
  }
  weir::set_blas_threads(1);  // leaves a core to the frontend

  Table table;
  if (wide) table.show_wide();
  add_pool(table);
  add_submit(table);
  add_admission(table);
  add_handover(table);
  add_checkpoint(table);
  add_staging(table);
  add_log(table);
  add_timeline(table);
  add_index(table);
  add_peers(table);
  add_swap_in(table);
  add_optimizer(table);
  const std::size_t ran = benchmark::RunSpecifiedBenchmarks(&table);
  benchmark::Shutdown();
  return ran == 0 ? 2 : 0;
}
