#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu/gpu_timer_cuda.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/optimizer/update.hpp"

namespace weir::bench {
namespace {

/// The first layer, and how many inputs of each of its rows are not zero; the last layer's weights.
struct UpdateSizes {
  DenseShape first;
  std::size_t row_entries = 0;
  std::size_t last = 0;
  int runs = 0;
};
constexpr UpdateSizes kMeasuredUpdates{
    {.m = 128, .k = 250'000, .n = 1024}, 500, std::size_t{512} * 200'000, 21};
constexpr UpdateSizes kSmallUpdates{{.m = 4, .k = 100, .n = 32}, 10, 999, 3};

template <typename T>
void copy_in(const std::vector<T>& host, std::span<T> device) {
  check_cuda(cudaMemcpy(device.data(), host.data(), device.size_bytes(), cudaMemcpyHostToDevice),
             "cudaMemcpy");
}

/// A batch by columns of which few have many entries, as words in a text. In the measured size
/// 51,536 of 250,000 have some.
struct HostColumns {
  explicit HostColumns(const UpdateSizes& sizes) {
    const std::size_t count = sizes.first.m * sizes.row_entries;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;  // column and row
    for (std::size_t e = 0; e < count; ++e) {
      const double unit = static_cast<double>(e) / static_cast<double>(count);
      const double place = unit * unit * unit * static_cast<double>(sizes.first.k);
      entries.emplace_back(static_cast<std::uint32_t>(place), e % sizes.first.m);
    }
    std::ranges::sort(entries);
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
    for (const auto& [column, row] : entries) {
      if (touched.empty() || touched.back() != column) {
        touched.push_back(column);
        starts.push_back(static_cast<std::uint32_t>(rows.size()));
      }
      rows.push_back(row);
      starts.back() = static_cast<std::uint32_t>(rows.size());
    }
  }

  std::vector<std::uint32_t> touched{};
  std::vector<std::uint32_t> starts{0};
  std::vector<std::uint32_t> rows{};
};

class UpdateRig {
 public:
  UpdateRig(const UpdateSizes& sizes, double copied_bytes)
      : sizes_(sizes), columns_(sizes), times_(sizes.runs, copied_bytes) {
    StepState state;
    state = begun(state, 0.9, 0.999);
    std::vector<float> words(kStepStateWords);
    store_step_state(state, words);
    copy_in(words, state_.all());
    copy_in(columns_.touched, touched_.all());
    copy_in(columns_.starts, starts_.all());
    copy_in(columns_.rows, rows_.all());
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::uint64_t random_stream = 0;
    for (DeviceBuffer<float>* buffer : {&w_, &first_, &dy_, &values_}) {
      cuda::fill_normal(times_.stream(), 1, ++random_stream, buffer->all());
    }
    cuda::fill(times_.stream(), second_.all(), 1.0F);  // a mean of squares
  }

  std::vector<KernelTime> run() {
    for (const auto& [name, optimizer] :
         {std::pair{"adam", Optimizer::kAdam}, std::pair{"adamax", Optimizer::kAdamax}}) {
      time_last(name, {.optimizer = optimizer});
      time_first(name, {.optimizer = optimizer});
    }
    return times_.take();
  }

 private:
  void time_last(const std::string& name, const OptimizerOptions& options);
  void time_first(const std::string& name, const OptimizerOptions& options);
  [[nodiscard]] Weights weights(std::size_t count) {
    return {.w = w_.first(count),
            .first = first_.first(count),
            .second = second_.first(count),
            .copy = {}};
  }

  UpdateSizes sizes_;
  std::size_t count_ = sizes_.first.k * sizes_.first.n;
  HostColumns columns_;
  DeviceBuffer<float> w_{std::max(count_, 2 * sizes_.last)};  // the last layer's gradient behind it
  DeviceBuffer<float> first_{count_};
  DeviceBuffer<float> second_{count_};
  DeviceBuffer<float> dy_{sizes_.first.m * sizes_.first.n};
  DeviceBuffer<float> state_{kStepStateWords};
  DeviceBuffer<std::uint32_t> touched_{columns_.touched.size()};
  DeviceBuffer<std::uint32_t> starts_{columns_.starts.size()};
  DeviceBuffer<std::uint32_t> rows_{columns_.rows.size()};
  DeviceBuffer<float> values_{columns_.rows.size()};
  KernelTimes times_;
};

/// Four arrays read, three written.
void UpdateRig::time_last(const std::string& name, const OptimizerOptions& options) {
  const std::size_t count = sizes_.last;
  const auto g = w_.all().subspan(count, count);
  times_.memory(name, std::to_string(count), 7 * kFloat * static_cast<double>(count),
                [&] { cuda::update(times_.stream(), options, weights(count), g, state_.all()); });
}

/// Three arrays read and written, and the batch read.
void UpdateRig::time_first(const std::string& name, const OptimizerOptions& options) {
  const CsrColumns x{touched_.all(), starts_.all(), rows_.all(), values_.all()};
  const auto batch =
      static_cast<double>(dy_.all().size_bytes() + x.touched.size_bytes() + x.starts.size_bytes() +
                          x.rows.size_bytes() + x.values.size_bytes());
  const std::string shape = std::to_string(sizes_.first.k) + "x" + std::to_string(sizes_.first.n);
  times_.memory(name + "_rows", shape, 6 * kFloat * static_cast<double>(count_) + batch, [&] {
    cuda::update_rows(times_.stream(), options, weights(count_), sizes_.first, x, dy_.all(),
                      state_.all(), UpdatedRows::kAll);
  });
}

}  // namespace

std::vector<KernelTime> time_updates(InputSize size, double copied_bytes) {
  return UpdateRig(size == InputSize::kSmall ? kSmallUpdates : kMeasuredUpdates, copied_bytes)
      .run();
}

}  // namespace weir::bench
