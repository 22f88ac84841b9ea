#include "trainer/data/batches.hpp"

#include <numeric>
#include <utility>

#include "kernels/parts/philox.hpp"

namespace weir {
namespace {

/// First Philox stream for shuffling; fill_normal's are far below.
constexpr std::uint32_t kShuffleStreamHigh = 0x80000000U;

/// Draws uniformly below `limit`: redraws the words that a remainder would favour.
std::uint32_t draw_below(std::uint32_t limit, PhiloxWords counter, PhiloxKey key) {
  const std::uint32_t favoured = (0U - limit) % limit;  // 2^32 mod limit
  for (counter.y = 0;; ++counter.y) {
    const std::uint32_t word = philox4x32(counter, key).x;
    if (word >= favoured) return word % limit;
  }
}

void copy_row(const LabelledImages& images, std::size_t image, std::span<float> inputs,
              float& target) {
  constexpr float kBrightest = 255.0F;
  const std::uint8_t* const pixels = images.pixels.data() + image * inputs.size();
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    inputs[p] = static_cast<float>(pixels[p]) / kBrightest;
  }
  target = static_cast<float>(images.labels[image]);
}

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint32_t count, std::uint64_t seed,
                                       std::uint64_t epoch) {
  const PhiloxKey key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)};
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t left = count; left > 1; --left) {
    const PhiloxWords counter{.x = left,
                              .y = 0,
                              .z = static_cast<std::uint32_t>(epoch),
                              .w = kShuffleStreamHigh | static_cast<std::uint32_t>(epoch >> 32U)};
    std::swap(order[left - 1], order[draw_below(left, counter, key)]);
  }
  return order;
}

BatchSource shuffled_source(std::shared_ptr<const DataSet> data, std::uint64_t rows_per_batch,
                            std::uint64_t seed) {
  struct Epoch {
    std::uint64_t number = 0;
    std::vector<std::uint32_t> order;  ///< empty until the first batch is requested
  };
  return [data = std::move(data), rows_per_batch, seed, epoch = Epoch{}](
             std::uint64_t index, std::span<float> inputs, std::span<float> targets) mutable {
    const LabelledImages& images = data->train;
    const std::uint64_t per_epoch = batches_of(images.count, rows_per_batch);
    if (epoch.order.empty() || epoch.number != index / per_epoch) {
      epoch.number = index / per_epoch;
      epoch.order = epoch_order(static_cast<std::uint32_t>(images.count), seed, epoch.number);
    }
    const std::size_t first = index % per_epoch * rows_per_batch;
    const std::size_t width = images.pixels_per_image();
    for (std::size_t row = 0; row < targets.size(); ++row) {
      copy_row(images, epoch.order[first + row], inputs.subspan(row * width, width), targets[row]);
    }
  };
}

BatchSource ordered_source(const LabelledImages& images, std::uint64_t rows_per_batch) {
  return [&images, rows_per_batch](std::uint64_t index, std::span<float> inputs,
                                   std::span<float> targets) {
    const std::size_t first = index % batches_of(images.count, rows_per_batch) * rows_per_batch;
    const std::size_t width = images.pixels_per_image();
    for (std::size_t row = 0; row < targets.size(); ++row) {
      copy_row(images, first + row, inputs.subspan(row * width, width), targets[row]);
    }
  };
}

}  // namespace weir
