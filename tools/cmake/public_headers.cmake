# What users of the library include, and what the reference documents without a gap. Other headers
# are installed only where one of these includes them: their contents may change in any version.
set(WEIR_PUBLIC_HEADERS
    allocator/allocation_log.hpp
    allocator/allocation_log_reader.hpp
    allocator/attempt.hpp
    allocator/budget.hpp
    allocator/bytes.hpp
    allocator/error.hpp
    allocator/log.hpp
    allocator/page_source.hpp
    allocator/pool.hpp
    allocator/pool_options.hpp
    allocator/pressure.hpp
    allocator/progress.hpp
    allocator/setting.hpp
    allocator/statistics.hpp
    allocator/upstream.hpp
    allocator/version.hpp
    scheduler/admission.hpp
    scheduler/batch.hpp
    scheduler/cuda.hpp
    scheduler/device.hpp
    scheduler/kernel.hpp
    scheduler/operation.hpp
    scheduler/policy.hpp
    scheduler/scheduler.hpp
    scheduler/stream.hpp
    scheduler/tensor.hpp)

# Those that need the toolkit's headers: installed by a build that has one.
if(WEIR_HAS_CUDA)
  list(
    APPEND
    WEIR_PUBLIC_HEADERS
    allocator/error_cuda.hpp
    allocator/progress_cuda.hpp
    allocator/upstream_cuda.hpp
    scheduler/stream_cuda.hpp)
endif()
