#pragma once

// One interface for CUPTI's two generations, so that their functions cannot be mixed.

#include <atomic>
#include <cstdint>
#include <string>

#include "tools/timeline/cupti/library.hpp"

namespace weir::timeline::cupti {

/// CUPTI, by the functions of one generation. Call these in the order of this class. Each returns
/// CUPTI's result: 0 is success. One per process and generation. As thread-safe as CUPTI: external
/// ids may be pushed at any time.
class Profiler {
 public:
  /// The newer generation allows several subscribers, the older one a single one.
  enum class Generation : std::uint8_t { kOlder, kNewer };
  Profiler(const Library& library, Generation generation)
      : library_(library), is_newer_(generation == Generation::kNewer) {}
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Takes hold of CUPTI. On failure, `holder` names the current holder if CUPTI reports it.
  [[nodiscard]] Result subscribe(std::string& holder);
  [[nodiscard]] Result set_zeroed_buffers();
  [[nodiscard]] Result set_system_thread_ids();
  [[nodiscard]] Result set_allocation_source();
  [[nodiscard]] Result set_timestamp(Timestamp now);
  /// Makes CUPTI write its records into activity_buffers().
  [[nodiscard]] Result register_buffers();
  [[nodiscard]] Result enable(Kind kind);
  /// Enables records of one function of the driver (Kind::kDriver) or the runtime (Kind::kRuntime).
  [[nodiscard]] Result enable_call(Kind kind, std::uint32_t function);

  /// Moves to the next record of a buffer; pass a null `record` for the first. Returns false at the
  /// end.
  [[nodiscard]] bool next_record(std::uint8_t* buffer, std::size_t valid, std::uint8_t*& record);
  /// Makes CUPTI deliver the buffers with complete records only, or all buffers.
  enum class Flush : std::uint8_t { kComplete, kForced };
  Result flush(Flush what);
  /// Returns the number of records dropped since the last call.
  [[nodiscard]] std::uint64_t take_dropped();
  /// Returns the device memory that CUPTI keeps per context, in bytes; 0 if unknown.
  [[nodiscard]] std::uint64_t device_bytes();

  void push_external(std::uint64_t id);
  void pop_external();

  void disable(Kind kind);
  /// Disables the records that enable_call() enabled.
  void disable_call(Kind kind, std::uint32_t function);
  void unsubscribe();

  /// "CUPTI_ERROR_UNKNOWN (999)".
  [[nodiscard]] std::string describe(Result result) const;
  /// Returns the name of a CUDA function; null if CUPTI does not know it.
  [[nodiscard]] const char* function_name(Kind kind, std::uint32_t function) const;

 private:
  template <typename Older, typename Newer, typename... Arguments>
  Result call(Older older, Newer newer, Arguments... arguments) const;
  template <typename Value>
  Result set(Attribute attribute, Value value) const;
  [[nodiscard]] std::uint64_t read(Attribute attribute) const;
  Result switch_call(Kind kind, std::uint32_t function, std::uint8_t on) const;

  const Library& library_;
  const bool is_newer_;
  std::atomic<Subscriber> subscriber_{nullptr};
};

}  // namespace weir::timeline::cupti
