// Measures the sparse layer: its time follows the entries of a batch and not the width of its
// input.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "bench/shared/table.hpp"
#include "kernels/sparse/csr_layer.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t kSparseRows = 32;
constexpr std::uint32_t kOutputs = 1024;

/// The width of X and the entries of each of its rows.
struct Width {
  std::uint32_t columns = 0;
  std::uint32_t entries = 0;
};
/// W is larger than the processor's own caches already, and a row of it fills a page of memory.
constexpr Width kOnce{2500, 50};
constexpr Width kFourTimesEntries{2500, 200};
constexpr Width kTenTimesColumns{25'000, 50};

/// Some next number, always the same (xorshift).
std::uint32_t next_number(std::uint32_t& state) {
  state ^= state << 13U;
  state ^= state >> 17U;
  state ^= state << 5U;
  return state;
}

void csr_forward_of(benchmark::State& state, Width width) {
  std::vector<std::uint32_t> starts{0};
  std::vector<std::uint32_t> indices;
  std::uint32_t random = 1;
  const std::uint32_t part = width.columns / width.entries;  // one entry in each
  for (std::uint32_t i = 0; i < kSparseRows; ++i) {
    for (std::uint32_t e = 0; e < width.entries; ++e) {
      indices.push_back(e * part + next_number(random) % part);
    }
    starts.push_back(static_cast<std::uint32_t>(indices.size()));
  }
  const std::vector<float> values(indices.size(), 0.5F);
  const std::vector<float> w(std::size_t{width.columns} * kOutputs, 0.25F);
  const std::vector<float> b(kOutputs, 1.0F);
  std::vector<float> y(std::size_t{kSparseRows} * kOutputs);
  for ([[maybe_unused]] auto _ : state) {
    csr_forward({width.columns, starts, indices, values}, w, b, y, Activation::kRelu);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
}

void add_csr_forward(const char* name, Width width) {
  benchmark::RegisterBenchmark(name, [width](benchmark::State& state) {
    csr_forward_of(state, width);
  })->UseRealTime();
}

}  // namespace

void add_sparse(Table& table) {
  constexpr const char* kName = "sparse/csr_forward";
  add_csr_forward(kName, kOnce);
  table.add({.figure = kName});
  add_csr_forward("sparse/csr_forward/4x_entries", kFourTimesEntries);
  table.add({.figure = "sparse/csr_forward/4x_entries", .against = kName, .most_ratio = 5});
  add_csr_forward("sparse/csr_forward/10x_columns", kTenTimesColumns);
  table.add({.figure = "sparse/csr_forward/10x_columns", .against = kName, .most_ratio = 1.3});
}

}  // namespace weir::bench
