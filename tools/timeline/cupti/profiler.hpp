#pragma once

// One interface for CUPTI's two generations, so that their functions cannot be mixed.

#include <cstdint>
#include <memory>
#include <string>

#include "tools/timeline/cupti/library.hpp"

namespace weir::timeline::cupti {

/// Functions for CUPTI to call. Plain functions, since CUPTI passes no user pointer.
struct BufferCalls {
  void (*requested)(std::uint8_t** buffer, std::size_t* size);
  void (*completed)(std::uint8_t* buffer, std::size_t valid);
};

/// CUPTI. Call the functions in the order of this class. Each returns CUPTI's result: 0 is success.
/// As thread-safe as CUPTI: external ids may be pushed at any time.
class Profiler {
 public:
  explicit Profiler(const Library& library) : library_(library) {}
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  virtual ~Profiler() = default;

  /// Takes hold of CUPTI. On failure, `holder` names the current holder if CUPTI reports it.
  [[nodiscard]] virtual Result subscribe(std::string& holder) = 0;
  [[nodiscard]] virtual Result set_zeroed_buffers() = 0;
  [[nodiscard]] virtual Result set_system_thread_ids() = 0;
  [[nodiscard]] virtual Result set_allocation_source() = 0;
  [[nodiscard]] virtual Result set_timestamp(Timestamp now) = 0;
  [[nodiscard]] virtual Result register_buffers(const BufferCalls& calls) = 0;
  [[nodiscard]] virtual Result enable(Kind kind) = 0;
  /// Enables records of one function of the driver (Kind::kDriver) or the runtime (Kind::kRuntime).
  [[nodiscard]] virtual Result enable_call(Kind kind, std::uint32_t function) = 0;

  /// Moves to the next record of a buffer; pass a null `record` for the first. Returns false at the
  /// end.
  [[nodiscard]] virtual bool next_record(std::uint8_t* buffer, std::size_t valid,
                                         std::uint8_t*& record) = 0;
  /// Makes CUPTI deliver the buffers with complete records only, or all buffers.
  enum class Flush : std::uint8_t { kComplete, kForced };
  Result flush(Flush what);
  /// Returns the number of records dropped since the last call.
  [[nodiscard]] virtual std::uint64_t take_dropped() = 0;
  /// Returns the device memory that CUPTI keeps per context, in bytes; 0 if unknown.
  [[nodiscard]] virtual std::uint64_t device_bytes() = 0;

  virtual void push_external(std::uint64_t id) = 0;
  virtual void pop_external() = 0;

  virtual void disable(Kind kind) = 0;
  /// Disables the records that enable_call() enabled.
  virtual void disable_call(Kind kind, std::uint32_t function) = 0;
  virtual void unsubscribe() = 0;

  /// "CUPTI_ERROR_UNKNOWN (999)".
  [[nodiscard]] std::string describe(Result result) const;
  /// Returns the name of a CUDA function; null if CUPTI does not know it.
  [[nodiscard]] const char* function_name(Kind kind, std::uint32_t function) const;

 protected:
  const Library& library_;
};

/// Makes a profiler of the generation that allows several subscribers. One per process.
[[nodiscard]] std::unique_ptr<Profiler> make_newer_profiler(const Library& library);
/// Makes a profiler of the generation with one subscriber.
[[nodiscard]] std::unique_ptr<Profiler> make_older_profiler(const Library& library);

}  // namespace weir::timeline::cupti
