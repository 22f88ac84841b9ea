#pragma once

// Included first in a .cu file that a host compiler compiles as C++: the built-ins of device code
// that kernels use. Kernels are started by `launch` of kernels/parts/launch_cuda.hpp, which this
// replaces. A kernel's function runs for every thread of a grid on the calling thread: block after
// block, and thread after thread, each until the next barrier.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "allocator/base/error_cuda.hpp"
#include "tests/standin/standin.hpp"

// A block runs on one thread, and nothing else runs meanwhile.
#undef __shared__
#define __shared__ static thread_local
#undef __launch_bounds__
#define __launch_bounds__(...)

extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
inline constexpr int warpSize = 32;

namespace weir::standin {

/// Calls `thread` once for each thread of the launch. Ends the program with a message if threads of
/// a block wait for others that never come.
void run_grid(const WeirStandinLaunch& launch, void (*thread)(const WeirStandinLaunch&));

/// For a thread of the grid: waits for all other threads of its block that have not ended.
void block_barrier();
/// The same. Returns how many of them say `yes`.
unsigned block_count(bool yes);
/// Waits for the lanes of its warp that are in `mask` and have not ended.
void warp_barrier(unsigned mask);
/// Gives `value` to the lanes in `mask`. Returns the value of lane `source`.
std::uint64_t warp_exchange(unsigned mask, std::uint64_t value, unsigned source);
/// The lanes in `mask` that say `yes`, as bits.
unsigned warp_ballot(unsigned mask, bool yes);
/// Its place in its warp.
unsigned lane();

}  // namespace weir::standin

inline void __syncthreads() { weir::standin::block_barrier(); }
inline int __syncthreads_count(int yes) {
  return static_cast<int>(weir::standin::block_count(yes != 0));
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFU) { weir::standin::warp_barrier(mask); }
inline unsigned __ballot_sync(unsigned mask, int yes) {
  return weir::standin::warp_ballot(mask, yes != 0);
}
inline int __any_sync(unsigned mask, int yes) { return __ballot_sync(mask, yes) != 0 ? 1 : 0; }

namespace weir::standin {

template <typename T>
T shuffle(unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t), "a shuffle is of at most eight bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = warp_exchange(mask, bits, source);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The first lane of the caller's segment of `width` lanes.
inline unsigned segment(unsigned width) { return lane() / width * width; }

}  // namespace weir::standin

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const auto lanes = static_cast<unsigned>(width);
  return weir::standin::shuffle(
      mask, value, weir::standin::segment(lanes) + static_cast<unsigned>(source) % lanes);
}
// A lane that would read beyond its segment gets its own value.
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const auto lanes = static_cast<unsigned>(width);
  const unsigned own = weir::standin::lane();
  return weir::standin::shuffle(mask, value, own % lanes + delta < lanes ? own + delta : own);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const auto lanes = static_cast<unsigned>(width);
  const unsigned own = weir::standin::lane();
  return weir::standin::shuffle(mask, value, own % lanes >= delta ? own - delta : own);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize) {
  const auto lanes = static_cast<unsigned>(width);
  const unsigned own = weir::standin::lane();
  const unsigned other = own ^ static_cast<unsigned>(bits);
  return weir::standin::shuffle(mask, value,
                                other < weir::standin::segment(lanes) + lanes ? other : own);
}

// Kernels of several streams run at the same time.
template <typename T>
T atomicAdd(T* address, T value) {
  T before;
  T after;
  __atomic_load(address, &before, __ATOMIC_RELAXED);
  do {
    after = before + value;
  } while (!__atomic_compare_exchange(address, &before, &after, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
  return before;
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __uint_as_float(unsigned a) { return __builtin_bit_cast(float, a); }
inline unsigned __float_as_uint(float a) { return __builtin_bit_cast(unsigned, a); }
inline float __int2float_rn(int a) { return static_cast<float>(a); }

using std::max;
using std::min;

namespace weir::standin {

template <typename... P>
struct Trampoline {
  static void run(const WeirStandinLaunch* launch) { run_grid(*launch, &thread); }

 private:
  static void thread(const WeirStandinLaunch& launch) {
    call(launch, std::index_sequence_for<P...>());
  }
  template <std::size_t... I>
  static void call(const WeirStandinLaunch& launch, std::index_sequence<I...>) {
    auto* kernel = reinterpret_cast<void (*)(P...)>(const_cast<void*>(launch.symbol));
    kernel(*static_cast<P*>(launch.arguments[I])...);
  }
};

/// Tells the stand-in driver how to run a kernel that the host's compiler has compiled.
template <typename... P>
void register_emulated(void (*kernel)(P...)) {
  const std::array<std::size_t, sizeof...(P) + 1> sizes{sizeof(P)..., 0};
  weir_standin_register_kernel(reinterpret_cast<const void*>(kernel), nullptr,
                               &Trampoline<P...>::run, sizes.data(), sizeof...(P));
}

}  // namespace weir::standin

#define WEIR_LAUNCH_IS_EMULATED 1

namespace weir::cuda {

struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;
};

template <typename... P, typename... A>
void launch(const char* name, void (*kernel)(P...), Grid grid, cudaStream_t stream,
            A... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  standin::register_emulated(kernel);
  std::tuple<P...> parameters(static_cast<P>(arguments)...);
  const cudaError_t code = std::apply(
      [&](P&... each) {
        void* addresses[sizeof...(P) + 1] = {static_cast<void*>(&each)..., nullptr};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.blocks),
                                dim3(grid.threads), addresses, 0, stream);
      },
      parameters);
  check_cuda(code, name);
}

}  // namespace weir::cuda
