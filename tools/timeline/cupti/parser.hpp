#pragma once

// From CUPTI's records to ours.

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

/// What could not be kept, in records.
struct Skipped {
  std::uint64_t backwards = 0;  ///< ended before they began
  std::uint64_t untimed = 0;    ///< CUPTI had no room for their times
  std::uint64_t unknown = 0;    ///< of a kind that is not read
};

/// Reads records in any order. Knows streams, and which batch and thread a correlation id came
/// from, across calls. What it remembers is bounded. Not thread-safe.
class Parser {
 public:
  /// The name of a function of CUDA; null where nobody knows it.
  using FunctionName = std::function<const char*(Kind kind, std::uint32_t function)>;

  explicit Parser(FunctionName function_name) : function_name_(std::move(function_name)) {}

  /// Nanoseconds to add to CUPTI's times.
  void set_offset(std::int64_t offset) noexcept { offset_ = offset; }

  /// Appends what one record says. Its size is that of the span: shorter than known where CUPTI is
  /// older than this, longer where it is newer.
  void read(std::span<const std::uint8_t> record, TimelineSink& names,
            std::vector<TimelineRecord>& records);
  /// After the records of one round, which begin at index `first`: gives them the batch, site and
  /// thread of their correlation ids, and removes the driver's calls that a call of the runtime
  /// made.
  void join(std::size_t first, std::vector<TimelineRecord>& records);

  /// Correlation ids begin anew: those of another recording tell nothing.
  void forget_origins() noexcept;

  [[nodiscard]] const Skipped& skipped() const noexcept { return skipped_; }

 private:
  struct Origin {
    std::uint64_t external = 0;  // make_external(); 0: none
    std::uint32_t thread = 0;    // the system's number; 0: not known
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
  std::unordered_map<std::uint32_t, std::uint64_t> contexts_;  // context: its place in order
  std::unordered_map<std::string, std::uint32_t> kernels_;     // mangled: number of the name
  std::unordered_map<std::uint32_t, Origin> origins_;          // by correlation id
  std::deque<std::uint32_t> order_;                            // of origins_, the oldest first
};

/// An external id: which batch and call site a thread works for.
[[nodiscard]] constexpr std::uint64_t make_external(std::uint32_t batch,
                                                    std::uint32_t site) noexcept {
  return (std::uint64_t{site} << 32U) | batch;
}

}  // namespace weir::timeline::cupti
