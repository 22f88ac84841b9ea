#pragma once

// One of CUPTI's two generations behind one interface, so that they cannot be mixed.

#include <cstdint>
#include <memory>
#include <string>

#include "tools/timeline/cupti/library.hpp"

namespace weir::timeline::cupti {

/// What CUPTI calls; plain functions, since it passes nothing of ours along.
struct BufferCalls {
  void (*requested)(std::uint8_t** buffer, std::size_t* size);
  void (*completed)(std::uint8_t* buffer, std::size_t valid);
};

/// CUPTI, called in the order of these functions. Each returns CUPTI's answer: 0 is success.
/// Thread-safe as CUPTI is: external ids may be pushed while anything else goes on.
class Profiler {
 public:
  explicit Profiler(const Library& library) : library_(library) {}
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  virtual ~Profiler() = default;

  /// Takes hold of CUPTI. `holder`: who has it already, where CUPTI says.
  [[nodiscard]] virtual Result subscribe(std::string& holder) = 0;
  [[nodiscard]] virtual Result set_zeroed_buffers() = 0;
  [[nodiscard]] virtual Result set_system_thread_ids() = 0;
  [[nodiscard]] virtual Result set_allocation_source() = 0;
  [[nodiscard]] virtual Result set_timestamp(Timestamp now) = 0;
  [[nodiscard]] virtual Result register_buffers(const BufferCalls& calls) = 0;
  [[nodiscard]] virtual Result enable(Kind kind) = 0;
  /// Records of one function of the driver (Kind::kDriver) or the runtime (Kind::kRuntime).
  [[nodiscard]] virtual Result enable_call(Kind kind, std::uint32_t function) = 0;

  /// The next record of a buffer; `record` is null for the first. False at the end.
  [[nodiscard]] virtual bool next_record(std::uint8_t* buffer, std::size_t valid,
                                         std::uint8_t*& record) = 0;
  /// Makes CUPTI hand over the buffers whose records are all complete, or all buffers.
  enum class Flush : std::uint8_t { kComplete, kForced };
  Result flush(Flush what);
  /// Records dropped since the last call.
  [[nodiscard]] virtual std::uint64_t take_dropped() = 0;
  /// Bytes of device memory that CUPTI keeps in each context, or 0 where it does not say.
  [[nodiscard]] virtual std::uint64_t device_bytes() = 0;

  virtual void push_external(std::uint64_t id) = 0;
  virtual void pop_external() = 0;

  virtual void disable(Kind kind) = 0;
  /// Ends the record of each function that enable_call() began.
  virtual void disable_call(Kind kind, std::uint32_t function) = 0;
  virtual void unsubscribe() = 0;

  /// "CUPTI_ERROR_UNKNOWN (999)".
  [[nodiscard]] std::string describe(Result result) const;
  /// The name of a function of CUDA; null where CUPTI does not know it.
  [[nodiscard]] const char* function_name(Kind kind, std::uint32_t function) const;

 protected:
  const Library& library_;
};

/// The generation in which several subscribers can live side by side. One for each process.
[[nodiscard]] std::unique_ptr<Profiler> make_newer_profiler(const Library& library);
/// The generation with one subscriber.
[[nodiscard]] std::unique_ptr<Profiler> make_older_profiler(const Library& library);

}  // namespace weir::timeline::cupti
