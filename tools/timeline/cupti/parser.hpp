#pragma once

// Converts CUPTI's records to ours.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/timeline/sink.hpp"
#include "tools/timeline/cupti/abi.hpp"

namespace weir::timeline::cupti {

/// The numbers of skipped records.
struct Skipped {
  std::uint64_t backwards = 0;  ///< ended before they began
  std::uint64_t untimed = 0;    ///< without times, because CUPTI had no room for them
  std::uint64_t unknown = 0;    ///< of an unsupported kind
};

/// Reads records in any order. Keeps streams, and the batch and the thread of each correlation id,
/// across calls, in bounded memory. Not thread-safe.
class Parser {
 public:
  /// Returns the name of a CUDA function; null if unknown.
  using FunctionName = std::function<const char*(Kind kind, std::uint32_t function)>;

  explicit Parser(FunctionName function_name) : function_name_(std::move(function_name)) {}

  /// Nanoseconds to add to CUPTI's times.
  void set_offset(std::int64_t offset) noexcept { offset_ = offset; }

  /// Appends the contents of one record. The span gives its size: shorter from an older CUPTI,
  /// longer from a newer one.
  void read(std::span<const std::uint8_t> record, TimelineSink& names,
            std::vector<TimelineRecord>& records);
  /// Call after the records of one round, which begin at index `first`. Sets batch, site and thread
  /// from their correlation ids, and removes driver calls made by a runtime call.
  void join(std::size_t first, std::vector<TimelineRecord>& records);

  /// Forgets all correlation ids, because another recording starts them anew.
  void forget_origins() noexcept;

  [[nodiscard]] const Skipped& skipped() const noexcept { return skipped_; }

 private:
  struct Origin {
    std::uint64_t external = 0;  // make_external(); 0: none
    std::uint32_t thread = 0;    // the system's thread number; 0: unknown
  };
  struct Place {
    std::uint32_t device = 0;
    std::uint32_t context = 0;
    std::uint32_t stream = 0;
  };

  template <typename Record>
  [[nodiscard]] bool set_times(const Record& from, TimelineRecord& record);
  [[nodiscard]] std::uint64_t time(std::uint64_t cupti) const noexcept {
    return cupti + static_cast<std::uint64_t>(offset_);
  }
  [[nodiscard]] std::uint64_t number_of(std::uint32_t context, std::uint32_t stream);
  [[nodiscard]] std::uint64_t stream_number(const Place& place, std::uint64_t at,
                                            TimelineSink& names,
                                            std::vector<TimelineRecord>& records);
  [[nodiscard]] std::uint32_t kernel_name(const char* mangled, TimelineSink& names);
  Origin& origin(std::uint32_t correlation);

  void read_kernel(const KernelRecord& from, TimelineSink& names,
                   std::vector<TimelineRecord>& records);
  template <typename Record>
  void read_copy(const Record& from, TimelineSink& names, std::vector<TimelineRecord>& records);
  void read_set(const SetRecord& from, TimelineSink& names, std::vector<TimelineRecord>& records);
  void read_sync(const SyncRecord& from, TimelineSink& names, std::vector<TimelineRecord>& records);
  void read_memory(const MemoryRecord& from, TimelineSink& names,
                   std::vector<TimelineRecord>& records);
  void read_pool(const PoolRecord& from, std::vector<TimelineRecord>& records);
  void read_call(const CallRecord& from, TimelineSink& names, std::vector<TimelineRecord>& records);
  void read_overhead(const OverheadRecord& from, TimelineSink& names,
                     std::vector<TimelineRecord>& records);
  void read_external(const ExternalRecord& from);

  FunctionName function_name_;
  std::int64_t offset_ = 0;
  Skipped skipped_;
  std::unordered_map<std::uint64_t, std::uint64_t> streams_;   // context and stream: our number
  std::unordered_map<std::uint32_t, std::uint64_t> contexts_;  // context: its index in order of
                                                               // appearance
  std::unordered_map<std::string, std::uint32_t> kernels_;     // mangled name: number of the name
  std::unordered_map<std::uint32_t, Origin> origins_;          // by correlation id
  std::deque<std::uint32_t> order_;                            // keys of origins_, the oldest first
};

/// Packs a thread's batch and call site into an external id.
[[nodiscard]] constexpr std::uint64_t make_external(std::uint32_t batch,
                                                    std::uint32_t site) noexcept {
  return (std::uint64_t{site} << 32U) | batch;
}

}  // namespace weir::timeline::cupti
