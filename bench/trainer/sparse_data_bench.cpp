// Sparse data on its way to the device: reading a libsvm file beside a plain read of it, and making
// batches of 128 rows of 500 entries, of 250,000 columns.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/shared/rig.hpp"
#include "bench/shared/table.hpp"
#include "kernels/sparse/packed.hpp"
#include "trainer/data/input_file.hpp"
#include "trainer/sparse/libsvm.hpp"
#include "trainer/sparse/sparse_reader.hpp"
#include "trainer/sparse/sparse_set.hpp"
#include "trainer/sparse/sparse_source.hpp"

namespace weir::bench {
namespace {

constexpr std::uint64_t kSetRows = 2000;
constexpr std::uint64_t kBatchRows = 128;
const SparseDraw& draw() {
  static const SparseDraw kDraw({.columns = 250'000, .classes = 200'000, .nnz = 500}, 1);
  return kDraw;
}

/// A made set of some ten megabytes in a temporary folder, in the page cache.
class MadeSet {
 public:
  MadeSet() { make_sparse("weir-bench", folder_.path(), kSetRows, draw()); }
  [[nodiscard]] std::string file() const { return folder_.file(kSparseTrainFile); }

 private:
  const TemporaryFolder folder_;
};

void show_rate(benchmark::State& state, std::size_t bytes) {
  state.counters["MB/s"] = benchmark::Counter(static_cast<double>(bytes) / 1e6,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void read_plainly(benchmark::State& state) {
  const MadeSet set;
  std::vector<std::byte> block(TextLines::kBlock);
  std::size_t size = 0;
  for ([[maybe_unused]] auto _ : state) {
    const InputFile file("weir-bench", set.file());
    size = file.size();
    for (std::size_t done = 0; done < size; done += block.size()) {
      file.read_at(done, std::span(block).first(std::min(block.size(), size - done)));
      benchmark::DoNotOptimize(block.data());
    }
  }
  show_rate(state, size);
}

void parse(benchmark::State& state) {
  const MadeSet set;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(read_libsvm("weir-bench", set.file(), {}));
  }
  show_rate(state, std::filesystem::file_size(set.file()));
}

void pack(benchmark::State& state) {
  SparseRows rows;
  generated_rows(draw(), kBatchRows)(0, rows);
  BatchPacker packer;
  std::vector<float> words(packed_words(packer.prepare(rows)));
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(packer.prepare(rows));
    packer.write(rows, words);
    benchmark::DoNotOptimize(words.data());
  }
  state.counters["entries"] = static_cast<double>(rows.indices.size());
}

/// All that a reader's thread does for a batch: choose the rows, sort and write.
void make_batch(benchmark::State& state) {
  auto set = std::make_shared<SparseRows>();
  for (std::uint64_t i = 0; i < kSetRows; ++i) draw().append(i, *set);
  const SparseSource source = shuffled_rows(set, kBatchRows, 1);
  BatchPacker packer;
  SparseRows rows;
  std::vector<float> words;
  std::uint64_t index = 0;
  for ([[maybe_unused]] auto _ : state) {
    rows.clear();
    source(index++, rows);
    words.resize(packed_words(packer.prepare(rows)));
    packer.write(rows, words);
    benchmark::DoNotOptimize(words.data());
  }
}

}  // namespace

void add_sparse_data(Table& table) {
  constexpr double kMillisecond = 1e6;
  const std::string plain = "sparse-data/read_plainly";
  table.add({.figure = plain}, read_plainly)->UseRealTime();
  table.add({.figure = "sparse-data/parse", .against = plain}, parse)->UseRealTime();
  table.add({.figure = "sparse-data/parse", .against = plain, .counter = "MB/s"});
  table.add({.figure = "sparse-data/pack", .most_ns = kMillisecond}, pack)->UseRealTime();
  table.add({.figure = "sparse-data/pack", .counter = "entries"});
  table
      .add({.figure = "sparse-data/make_batch",
            .against = "sparse-data/pack",
            .most_ns = 2 * kMillisecond},
           make_batch)
      ->UseRealTime();
}

}  // namespace weir::bench
