# The headers that users include and the reference documents completely. Other headers are installed
# only if one of these includes them, and may change in any version.
set(WEIR_PUBLIC_HEADERS
    allocator/log/allocation_log.hpp
    allocator/log/allocation_log_reader.hpp
    allocator/attempt.hpp
    allocator/budget.hpp
    allocator/base/bytes.hpp
    allocator/base/error.hpp
    allocator/base/log.hpp
    allocator/memory/page_source.hpp
    allocator/pool.hpp
    allocator/pool_options.hpp
    allocator/pressure.hpp
    allocator/progress/progress.hpp
    allocator/base/setting.hpp
    allocator/statistics.hpp
    allocator/memory/upstream.hpp
    allocator/base/version.hpp
    scheduler/admission/admission.hpp
    scheduler/batch.hpp
    scheduler/device/cuda.hpp
    scheduler/device/device.hpp
    scheduler/kernel.hpp
    scheduler/operation.hpp
    scheduler/admission/policy.hpp
    scheduler/scheduler.hpp
    scheduler/device/stream.hpp
    scheduler/tensor.hpp)

# Headers that need the toolkit's: installed by a build that has a toolkit.
if(WEIR_HAS_CUDA)
  list(
    APPEND
    WEIR_PUBLIC_HEADERS
    allocator/base/error_cuda.hpp
    allocator/progress/progress_cuda.hpp
    allocator/memory/upstream_cuda.hpp
    scheduler/device/stream_cuda.hpp)
endif()
