#pragma once

// What a model computes, on one kind of device: the interface between the trainer and the kernels.
// maths.inc lists the functions.
//
// Every function enqueues on `stream` and returns; the cpu device, whose streams are threads,
// computes at once. Spans are device memory of the sizes given in the kernels' headers; otherwise
// throws UsageError. `workspace` is scratch memory of `workspace()` bytes that nothing else uses
// meanwhile, empty if that is zero.
//
// Called inside submitted closures, which keep a pointer to the Maths: it must outlive them.
// Thread-safe for disjoint outputs.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "kernels/dense.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/precision/precision.hpp"
#include "kernels/sparse/csr.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

// 16-bit numbers in a tensor, which holds floats: two in each, in the order of memory; the last
// float of an odd number of them is half unused.

/// Returns the floats that hold `count` words.
[[nodiscard]] constexpr std::size_t half_word_floats(std::size_t count) noexcept {
  return (count + 1) / 2;
}
/// Returns the first `count` words, which must be there.
[[nodiscard]] inline std::span<const std::uint16_t> half_words(std::span<const float> floats,
                                                               std::size_t count) noexcept {
  return {reinterpret_cast<const std::uint16_t*>(floats.data()), count};
}
[[nodiscard]] inline std::span<std::uint16_t> half_words(std::span<float> floats,
                                                         std::size_t count) noexcept {
  return {reinterpret_cast<std::uint16_t*>(floats.data()), count};
}

/// Normal numbers from the Philox stream `sequence` of `seed`, times `deviation`.
struct NormalDraw {
  std::uint64_t seed = 0;
  std::uint64_t sequence = 0;
  float deviation = 1;
  std::uint64_t first = 0;  ///< the number of the first one in the stream
};

class Maths {
 public:
  using In = std::span<const float>;
  using Out = std::span<float>;

  Maths() = default;
  Maths(const Maths&) = delete;
  Maths& operator=(const Maths&) = delete;
  virtual ~Maths() = default;

  /// Returns the scratch memory that functions with a `workspace` need.
  [[nodiscard]] virtual Bytes workspace() const noexcept = 0;
  /// out[i] = deviation * number first + i; the same bits on every device.
  virtual void fill_normal(Stream& stream, NormalDraw draw, Out out) = 0;

#define MATHS(name, parameters, arguments) virtual void name(Stream&, MATHS_LIST parameters) = 0;
#define MATHS_SCRATCH(name, parameters, arguments) \
  virtual void name(Stream&, MATHS_LIST parameters, Out workspace) = 0;
#define MATHS_BLAS MATHS_SCRATCH
#include "trainer/model/maths.inc"
};

/// Returns the maths for this kind of device. Throws UsageError for a device that open_device does
/// not know, and Error if the GPU's libraries fail.
[[nodiscard]] std::unique_ptr<Maths> make_maths(const Device& device);

/// Returns the scratch memory that the device's maths needs, without opening the device.
[[nodiscard]] Bytes workspace_of(std::string_view device);

/// Uses kernels/ and needs no workspace.
[[nodiscard]] std::unique_ptr<Maths> make_cpu_maths();
/// Uses the kernels of GPU number `ordinal`. Throws UsageError if this build has no CUDA.
[[nodiscard]] std::unique_ptr<Maths> make_cuda_maths(int ordinal);
/// Returns its scratch memory; zero if this build has no CUDA.
[[nodiscard]] Bytes cuda_workspace() noexcept;

}  // namespace weir
