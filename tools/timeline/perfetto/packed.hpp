#pragma once

// Records in few bytes, nothing lost. Each record is told by what it differs in from what the ones
// before let expect: programs repeat themselves, so that most fields are as expected and take none.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Packs or unpacks the records of one process, in one order. The two sides expect the same as long
/// as they have seen the same records. Not thread-safe. About 1 MiB.
class Packed {
 public:
  /// Appends a record.
  void pack(const TimelineRecord& record, std::string& out);
  /// What `unpack` found.
  enum class Found : std::uint8_t { kRecord, kCut, kNonsense };
  /// Takes a record off the front of `in`. Without one, all is as before the call.
  [[nodiscard]] Found unpack(std::string_view& in, TimelineRecord& record);

 private:
  // Guesses are kept in tables of a fixed size, where one may overwrite another: then the guess is
  // wrong and costs bytes, on both sides alike.
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
  struct Books {  ///< by source
    std::uint64_t sequence, allocated, awaiting, cached;
  };
  /// How books change with a record, in multiples of its bytes; by kind and detail.
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
  std::array<Books, 256> books_{};
  std::array<std::array<Change, 8>, kTimelineKinds> changes_{};
  std::array<std::uint32_t, 256> batches_{};  ///< by thread
};

}  // namespace weir::timeline
