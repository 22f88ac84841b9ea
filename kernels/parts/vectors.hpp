#pragma once

/// @file
/// Runs a loop as the processor's widest vectors compute it. The program is compiled for any
/// x86-64, whose vectors have four floats; most processors have eight or sixteen. Only for the
/// kernels' sources.
///
/// The work is compiled once for each width, and the processor's is chosen when it runs. The bits
/// are the same, because no product and sum are fused (-ffp-contract=off).

#include <cstdint>

namespace weir {

enum class VectorWidth : std::uint8_t { kFourFloats, kEightFloats, kSixteenFloats };

/// Returns this processor's.
[[nodiscard]] inline VectorWidth widest_vectors() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return VectorWidth::kSixteenFloats;
  }
  if (__builtin_cpu_supports("avx2")) return VectorWidth::kEightFloats;
#endif
  return VectorWidth::kFourFloats;
}

namespace vector_parts {

// A function compiled for wide vectors uses them in the functions it calls only if those are
// inlined: `flatten` inlines them.
#if defined(__x86_64__)
template <typename Work>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::flatten]] void run_sixteen(
    const Work& work) {
  work();
}
template <typename Work>
[[gnu::target("avx2"), gnu::flatten]] void run_eight(const Work& work) {
  work();
}
#endif

}  // namespace vector_parts

/// Calls work(), compiled for vectors of this width. The processor must have it.
template <typename Work>
void with_vectors(const Work& work, VectorWidth width = widest_vectors()) {
#if defined(__x86_64__)
  if (width == VectorWidth::kSixteenFloats) return vector_parts::run_sixteen(work);
  if (width == VectorWidth::kEightFloats) return vector_parts::run_eight(work);
#endif
  (void)width;
  work();
}

}  // namespace weir
