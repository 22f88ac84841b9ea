// Work for the device. The program's shortest and most frequent calls: most cost a counter and a
// jump.

#include <cstdint>

#include "tools/preload/context/known_streams.hpp"
#include "tools/preload/hooks/pass.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

/// A thread looks once per this many launches: often enough to see how far the device is behind,
/// and cheap. docs/swap-in.md has the cost. Where it may have to wait at the hard limit, it looks
/// at each.
constexpr std::uint32_t kLaunchesOfALook = 32;
/// Handles up to this one mean default streams (CU_STREAM_LEGACY, CU_STREAM_PER_THREAD).
constexpr std::uintptr_t kLastOfDefaultStreams = 2;

[[gnu::noinline, gnu::cold]] void look(CUstream stream, bool per_thread) noexcept {
  Call call;
  Process* const process = Process::get_if_any();
  const Located here =
      process != nullptr ? process->contexts().locate(stream, per_thread) : Located{};
  if (here.arena == nullptr || here.arena->fences().forbids_asking()) return;
  (void)here.arena->device().own().refresh();
  here.arena->device().keep_share();
  here.arena->note_launches(call, here.stream);
}

/// Follows a stream whose creation nobody saw, from its first work on. From then on, fences on
/// everything must expect more of its kind.
[[gnu::noinline, gnu::cold]] void follow(CUstream stream) noexcept {
  const Call call;
  if (call.nested()) Call::follow_later(stream);
  Process* const process = Process::get_if_any();
  if (process == nullptr) return;
  if (process->contexts().locate(stream, false).arena != nullptr) KnownStreams::add(stream);
}

inline void note(CUstream stream, bool per_thread) noexcept {
  if ((per_thread && stream == nullptr) || stream == CU_STREAM_PER_THREAD) use_own_stream();
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  if (handle > kLastOfDefaultStreams && !KnownStreams::has(stream)) follow(stream);
  if (++this_thread.launches % kLaunchesOfALook == 0 || PoolSums::any_wait_at_limit())
    look(stream, per_thread);
}

/// Asks again for a graph that found no memory for its allocations, after room was made.
template <typename F>
[[gnu::noinline, gnu::cold]] CUresult with_room(F Driver::*real, bool per_thread, CUgraphExec graph,
                                                CUstream stream) noexcept {
  Call call;
  Process* const process = Process::get_if_any();
  const Located here =
      process != nullptr ? process->contexts().locate(stream, per_thread) : Located{};
  if (here.arena == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  here.arena->device().own().use_graphs();
  return obtain(
      call, process, &here.arena->device(), {.kind = Kind::kGraphs},
      [&] { return pass(real, graph, stream); }, static_cast<const CUdeviceptr*>(nullptr));
}

template <typename F>
CUresult run_graph(F Driver::*real, bool per_thread, CUgraphExec graph, CUstream stream) noexcept {
  const CUresult code = jump(real, graph, stream);
  return code != CUDA_ERROR_OUT_OF_MEMORY ? code : with_room(real, per_thread, graph, stream);
}

}  // namespace
}  // namespace weir::preload

using namespace weir::preload;

extern "C" {

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  note(stream, false);
  return run_graph(&Driver::cuGraphLaunch, false, graph, stream);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  note(stream, true);
  return run_graph(&Driver::cuGraphLaunch_ptsz, true, graph, stream);
}
CUresult cuGraphUpload(CUgraphExec graph, CUstream stream) {
  return run_graph(&Driver::cuGraphUpload, false, graph, stream);
}
CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream) {
  return run_graph(&Driver::cuGraphUpload_ptsz, true, graph, stream);
}

// Defines both forms of a function that enqueues on `stream`.
#define PACED(name, parameters, arguments, stream)            \
  CUresult name parameters {                                  \
    note(stream, false);                                      \
    return jump(&Driver::name, WEIR_EXPAND arguments);        \
  }                                                           \
  CUresult name##_ptsz parameters {                           \
    note(stream, true);                                       \
    return jump(&Driver::name##_ptsz, WEIR_EXPAND arguments); \
  }
#define WEIR_EXPAND(...) __VA_ARGS__

PACED(cuLaunchKernel,
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
       unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
       CUstream stream, void** parameters, void** extra),
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters,
       extra),
      stream)
PACED(cuLaunchKernelEx,
      (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra),
      (config, function, parameters, extra), config != nullptr ? config->hStream : nullptr)
PACED(cuLaunchCooperativeKernel,
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
       unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
       CUstream stream, void** parameters),
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters),
      stream)
PACED(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream),
      (to, from, bytes, stream), stream)
PACED(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream),
      (to, from, bytes, stream), stream)
PACED(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream),
      (to, from, bytes, stream), stream)
PACED(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream),
      (to, from, bytes, stream), stream)
PACED(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* copy, CUstream stream), (copy, stream), stream)
PACED(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* copy, CUstream stream), (copy, stream), stream)
PACED(cuMemcpyPeerAsync,
      (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
       std::size_t bytes, CUstream stream),
      (to, to_context, from, from_context, bytes, stream), stream)
PACED(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* copy, CUstream stream), (copy, stream),
      stream)
#if CUDA_VERSION >= 12080
PACED(cuMemcpyBatchAsync,
      (CUdeviceptr * to, CUdeviceptr* from, std::size_t* bytes, std::size_t count,
       CUmemcpyAttributes* attributes, std::size_t* indices, std::size_t attribute_count,
       std::size_t* failed, CUstream stream),
      (to, from, bytes, count, attributes, indices, attribute_count, failed, stream), stream)
PACED(cuMemcpy3DBatchAsync,
      (std::size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, std::size_t* failed,
       unsigned long long flags, CUstream stream),
      (count, copies, failed, flags, stream), stream)
#endif
#if CUDA_VERSION >= 13000
PACED(cuMemcpyBatchAsync_v2,
      (CUdeviceptr * to, CUdeviceptr* from, std::size_t* bytes, std::size_t count,
       CUmemcpyAttributes* attributes, std::size_t* indices, std::size_t attribute_count,
       CUstream stream),
      (to, from, bytes, count, attributes, indices, attribute_count, stream), stream)
PACED(cuMemcpy3DBatchAsync_v2,
      (std::size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long flags,
       CUstream stream),
      (count, copies, flags, stream), stream)
#endif
PACED(cuMemcpyHtoAAsync_v2,
      (CUarray to, std::size_t offset, const void* from, std::size_t bytes, CUstream stream),
      (to, offset, from, bytes, stream), stream)
PACED(cuMemcpyAtoHAsync_v2,
      (void* to, CUarray from, std::size_t offset, std::size_t bytes, CUstream stream),
      (to, from, offset, bytes, stream), stream)
PACED(cuMemsetD2D8Async,
      (CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
       std::size_t height, CUstream stream),
      (to, pitch, value, width, height, stream), stream)
PACED(cuMemsetD2D16Async,
      (CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
       std::size_t height, CUstream stream),
      (to, pitch, value, width, height, stream), stream)
PACED(cuMemsetD2D32Async,
      (CUdeviceptr to, std::size_t pitch, unsigned int value, std::size_t width, std::size_t height,
       CUstream stream),
      (to, pitch, value, width, height, stream), stream)
PACED(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream),
      (to, value, count, stream), stream)
PACED(cuMemsetD16Async, (CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream),
      (to, value, count, stream), stream)
PACED(cuMemsetD32Async, (CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream),
      (to, value, count, stream), stream)

// Defines the per-thread form of a function without a stream.
#define ON_DEFAULT(name, parameters, arguments)               \
  CUresult name##_ptds parameters {                           \
    use_own_stream();                                         \
    return jump(&Driver::name##_ptds, WEIR_EXPAND arguments); \
  }

ON_DEFAULT(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes), (to, from, bytes))
ON_DEFAULT(cuMemcpyPeer,
           (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
            std::size_t bytes),
           (to, to_context, from, from_context, bytes))
ON_DEFAULT(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, std::size_t bytes),
           (to, from, bytes))
ON_DEFAULT(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, std::size_t bytes), (to, from, bytes))
ON_DEFAULT(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes),
           (to, from, bytes))
ON_DEFAULT(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* copy), (copy))
ON_DEFAULT(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* copy), (copy))
ON_DEFAULT(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* copy), (copy))
ON_DEFAULT(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* copy), (copy))
ON_DEFAULT(cuMemcpyDtoA_v2, (CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes),
           (to, offset, from, bytes))
ON_DEFAULT(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes),
           (to, from, offset, bytes))
ON_DEFAULT(cuMemcpyHtoA_v2, (CUarray to, std::size_t offset, const void* from, std::size_t bytes),
           (to, offset, from, bytes))
ON_DEFAULT(cuMemcpyAtoH_v2, (void* to, CUarray from, std::size_t offset, std::size_t bytes),
           (to, from, offset, bytes))
ON_DEFAULT(cuMemcpyAtoA_v2,
           (CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
            std::size_t bytes),
           (to, to_offset, from, from_offset, bytes))
ON_DEFAULT(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, std::size_t count),
           (to, value, count))
ON_DEFAULT(cuMemsetD16_v2, (CUdeviceptr to, unsigned short value, std::size_t count),
           (to, value, count))
ON_DEFAULT(cuMemsetD32_v2, (CUdeviceptr to, unsigned int value, std::size_t count),
           (to, value, count))
ON_DEFAULT(cuMemsetD2D8_v2,
           (CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
            std::size_t height),
           (to, pitch, value, width, height))
ON_DEFAULT(cuMemsetD2D16_v2,
           (CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
            std::size_t height),
           (to, pitch, value, width, height))
ON_DEFAULT(cuMemsetD2D32_v2,
           (CUdeviceptr to, std::size_t pitch, unsigned int value, std::size_t width,
            std::size_t height),
           (to, pitch, value, width, height))

}  // extern "C"
