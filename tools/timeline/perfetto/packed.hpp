#pragma once

// Packs records without loss. Stores only a record's differences from a prediction based on earlier
// records. Programs repeat themselves, so most fields match and take no bytes.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Packs or unpacks the records of one process, in order. Both sides make equal predictions after
/// equal records. Not thread-safe. Takes about 1 MiB.
class Packed {
 public:
  /// Appends a record.
  void pack(const TimelineRecord& record, std::string& out);
  /// The result of `unpack`.
  enum class Found : std::uint8_t { kRecord, kCut, kNonsense };
  /// Takes a record off the front of `in`. Changes nothing if there is none.
  [[nodiscard]] Found unpack(std::string_view& in, TimelineRecord& record);

 private:
  // Predictions are in tables of fixed size, where entries may overwrite each other. A wrong
  // prediction costs bytes, but is the same on both sides.
  static constexpr std::size_t kTable = 4096;
  struct Named {  ///< by kind and name
    std::uint64_t bytes, requested, duration;
    std::uint32_t site;
    std::uint8_t detail;
  };
  struct Block {  ///< by address
    std::uint64_t bytes, requested, stream;
  };
  struct Operation {  ///< by number
    std::uint32_t name, site, batch;
    std::uint64_t stream;
  };
  struct Counts {  ///< by source
    std::uint64_t sequence, allocated, awaiting, cached;
  };
  /// How a pool's counts change with a record, in multiples of its bytes; by kind and detail.
  struct Change {
    std::uint64_t allocated, awaiting, cached;
  };

  template <typename Coder>
  void walk(TimelineRecord& record, Coder& coder) const;
  void learn(const TimelineRecord& record);

  std::uint64_t time_ = 0;
  std::array<TimelineRecord, kTimelineKinds> last_{};  ///< by kind
  std::array<Named, kTable> named_{};
  std::array<std::uint32_t, kTable> next_name_{};    ///< by kind and name
  std::array<std::uint64_t, kTable * 4> next_id_{};  ///< by kind and id
  std::array<Block, kTable * 4> blocks_{};
  std::array<Operation, kTable> operations_{};
  std::array<Counts, 256> counts_{};
  std::array<std::array<Change, 8>, kTimelineKinds> changes_{};
  std::array<std::uint32_t, 256> batches_{};  ///< by thread
};

}  // namespace weir::timeline
