#ifndef WEIR_CUDA_RESOURCE_HPP
#define WEIR_CUDA_RESOURCE_HPP

/// @file
/// Weir's memory as a resource of CCCL's cuda::mr, device-accessible and in stream order: for RMM,
/// for containers and algorithms of CCCL, and for whoever takes such a resource.
///
///   weir::SwappedInResource<rmm::out_of_memory> resource{weir::SwappedInMemory{0}};
///   rmm::mr::set_current_device_resource(resource);
///
/// Needs this header and weir.h beside it, no build of Weir: the program looks the functions up and
/// runs under `weir run`. Over a pool of libweir-core (weir/allocator/adapt/pool_memory_cuda.hpp)
/// it is
///
///   weir::CudaResource<weir::PoolMemory> resource{weir::PoolMemory{pool, streams}};
///
/// C++17 or later. CCCL 3.2 or later, as in RMM 26.02; before that the concepts were experimental
/// and had other names: CCCL 3.0 is served too.

#ifndef LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE /* which CCCL asks for before 3.2 */
#endif

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "weir.h"

namespace weir {

/// Thrown if there is no memory, unless the program names an error of its own.
class NoDeviceMemory : public std::bad_alloc {
 public:
  /// `what` becomes `what()`.
  explicit NoDeviceMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// The memory of a program under `weir run`, of one device. Copies serve the same. Thread-safe.
class SwappedInMemory {
 public:
  /// Throws std::runtime_error if libweir.so is not swapped in, or older than its interface 4.
  explicit SwappedInMemory(int device) : device_(device) {
    if (weir_api_version() < 4) {
      throw std::runtime_error(
          "Weir is not swapped in, or older than its interface 4: start the program with weir run");
    }
  }
  /// Allocates for later work on `stream`. Returns null for 0 bytes, and with the figures in `why`
  /// if there is no memory.
  void* allocate(std::size_t bytes, cudaStream_t stream, std::string& why) const {
    void* const memory = weir_allocate(device_, bytes, stream);
    if (memory == nullptr && bytes != 0) why = figures();
    return memory;
  }
  /// Frees in the order of `stream`: work enqueued there so far may still use the memory.
  void deallocate(void* pointer, cudaStream_t stream) const noexcept {
    weir_free(device_, pointer, stream);
  }
  /// Returns the number of the GPU.
  int device() const noexcept { return device_; }

  /// True for the same device.
  friend bool operator==(const SwappedInMemory& a, const SwappedInMemory& b) noexcept {
    return a.device_ == b.device_;
  }

 private:
  std::string figures() const {
    weir_memory now;
    now.size = sizeof now;
    if (weir_memory_info(device_, &now) == 0) return "the device cannot be used";
    return "budget " + std::to_string(now.budget) + ", allocated " + std::to_string(now.allocated) +
           ", awaiting " + std::to_string(now.awaiting) + ", passed " + std::to_string(now.passed) +
           " bytes";
  }

  int device_;
};

/// A cuda::mr resource over `Memory`: SwappedInMemory, PoolMemory, or a type with their functions.
/// Throws `Failure(std::string)`, such as rmm::out_of_memory, if there is no memory.
///
/// Copies serve the same memory, which must outlive them. A null stream means the legacy default
/// stream, or that of the thread in a source compiled for per-thread default streams; both of the
/// current device, which must be the resource's. Thread-safe.
template <typename Memory, typename Failure = NoDeviceMemory>
class CudaResource {
 public:
  static constexpr std::size_t kAlignment = 256;      ///< unless asked for more (CUDA's promise)
  static constexpr std::size_t kMostAlignment = 512;  ///< the most that can be asked for

  /// Serves `memory`.
  explicit CudaResource(Memory memory) : memory_(std::move(memory)) {}
  /// Returns what it serves.
  const Memory& memory() const noexcept { return memory_; }

  /// Allocates for later work on `stream`; null for 0 bytes. Throws `Failure`, and
  /// std::invalid_argument for an alignment beyond kMostAlignment or no power of two.
  void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = kAlignment) {
    return take(named(stream.get()), bytes, alignment);
  }
  /// Frees in the order of `stream`. Work on other streams that uses the memory must be over, or
  /// before what is enqueued on `stream`.
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t /*bytes*/,
                  std::size_t /*alignment*/ = kAlignment) noexcept {
    memory_.deallocate(pointer, named(stream.get()));
  }

  /// Allocates memory that any stream may use at once: waits for the device's legacy stream.
  void* allocate_sync(std::size_t bytes, std::size_t alignment = kAlignment) {
    void* const memory = take(cudaStreamLegacy, bytes, alignment);
    if (memory == nullptr || synchronized()) return memory;
    memory_.deallocate(memory, cudaStreamLegacy);
    throw std::runtime_error("cudaStreamSynchronize failed on device " +
                             std::to_string(memory_.device()));
  }
  /// Frees memory that no stream uses any more, as CCCL demands of its callers.
  void deallocate_sync(void* pointer, std::size_t /*bytes*/,
                       std::size_t /*alignment*/ = kAlignment) noexcept {
    memory_.deallocate(pointer, cudaStreamLegacy);
  }

#if CCCL_VERSION < 3001000  // the same by their earlier names
  void* allocate_async(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream) {
    return allocate(stream, bytes, alignment);
  }
  void deallocate_async(void* pointer, std::size_t bytes, std::size_t alignment,
                        cuda::stream_ref stream) {
    deallocate(stream, pointer, bytes, alignment);
  }
  void* allocate(std::size_t bytes, std::size_t alignment = kAlignment) {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(void* pointer, std::size_t bytes, std::size_t alignment = kAlignment) {
    deallocate_sync(pointer, bytes, alignment);
  }
#endif

  /// True if one may free what the other allocated.
  friend bool operator==(const CudaResource& a, const CudaResource& b) noexcept {
    return a.memory_ == b.memory_;
  }
#if __cplusplus < 202002L
  friend bool operator!=(const CudaResource& a, const CudaResource& b) noexcept {
    return !(a == b);
  }
#endif
  /// Says that kernels can use the memory.
  friend void get_property(const CudaResource&, cuda::mr::device_accessible) noexcept {}

 private:
  /// Null means what it means to the source that includes this.
  static cudaStream_t named(cudaStream_t stream) noexcept {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    return stream == nullptr ? cudaStreamPerThread : stream;
#else
    return stream;
#endif
  }

  void* take(cudaStream_t stream, std::size_t bytes, std::size_t alignment) {
    if (alignment > kMostAlignment || (alignment & (alignment - 1)) != 0) {
      throw std::invalid_argument("an alignment is a power of two up to 512, not " +
                                  std::to_string(alignment));
    }
    std::string why;
    void* const memory = memory_.allocate(bytes, stream, why);
    if (memory != nullptr || bytes == 0) return memory;
    throw Failure("Weir has no " + std::to_string(bytes) + " bytes on device " +
                  std::to_string(memory_.device()) + ": " + why);
  }

  /// The name of the legacy stream means that of the current device.
  bool synchronized() const noexcept {
    int before = 0;
    if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(memory_.device()) != cudaSuccess) {
      return false;
    }
    const bool done = cudaStreamSynchronize(cudaStreamLegacy) == cudaSuccess;
    return cudaSetDevice(before) == cudaSuccess && done;
  }

  Memory memory_;
};

/// A resource over the memory of a program under `weir run`.
template <typename Failure = NoDeviceMemory>
using SwappedInResource = CudaResource<SwappedInMemory, Failure>;

#if CCCL_VERSION >= 3001000
static_assert(cuda::mr::resource_with<SwappedInResource<>, cuda::mr::device_accessible>);
static_assert(
    cuda::mr::synchronous_resource_with<SwappedInResource<>, cuda::mr::device_accessible>);
#else
static_assert(cuda::mr::async_resource_with<SwappedInResource<>, cuda::mr::device_accessible>);
#endif

}  // namespace weir

#endif  // WEIR_CUDA_RESOURCE_HPP
