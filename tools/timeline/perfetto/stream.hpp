#pragma once

// One sequence of packets, Perfetto's "trusted packet sequence". Each time base, name and source is
// written once and then referred to by a small number.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "allocator/timeline/record.hpp"
#include "tools/timeline/perfetto/wire.hpp"

namespace weir::timeline::perfetto {

/// Appends packets of one sequence to `out`, which must outlive this. Not thread-safe.
class PacketStream {
 public:
  PacketStream(std::string& out, std::uint64_t sequence) : out_(&out), sequence_(sequence) {}
  /// `track`: the default track of events; 0: none.
  void start(std::uint64_t track);

  /// A packet with a time. Fill it until the end of the scope. Times that go back take more bytes.
  class Packet;

  /// Writes the text of `number` on its first use.
  void name_category(std::uint64_t number, std::string_view text) {
    if (categories_.insert(number).second) intern(1, number, text);
  }
  void name_event(std::uint64_t number, std::string_view text) {
    if (names_.insert(number).second) intern(2, number, text);
  }
  void name_annotation(std::uint64_t number, std::string_view text) { intern(3, number, text); }
  /// Does the same for a site, `file:line`.
  void name_site(std::uint64_t number, std::string_view site);

  [[nodiscard]] std::uint64_t time() const noexcept { return time_; }

 private:
  void intern(std::uint32_t kind, std::uint64_t number, std::string_view text);

  std::string* out_;
  std::uint64_t sequence_;
  std::uint64_t time_ = 0;
  std::unordered_set<std::uint64_t> categories_, names_, sites_;
};

class PacketStream::Packet {
 public:
  Packet(PacketStream& stream, std::uint64_t time);

 private:
  wire::Message packet_;
};

}  // namespace weir::timeline::perfetto

namespace weir::timeline {

// Draws batches as slices: open from admission to close, then queued until the device is done.

/// Decides which slices begin and end with a record, and on which lane, so that none overlap.
/// Several batches may be open or queued at once. Not thread-safe.
class BatchSpans {
 public:
  enum class Span : std::uint8_t { kOpen, kQueued };
  struct Change {
    Span span = Span::kOpen;
    bool begins = false;
    std::uint32_t lane = 0;
  };
  /// Returns the changes at `record.begin`, in order; none for an out-of-order record.
  [[nodiscard]] std::vector<Change> add(const TimelineRecord& record);

 private:
  struct Lane {
    bool taken = false;
    std::uint64_t free_from = 0;
  };
  struct Begun {
    Span span = Span::kOpen;
    std::uint32_t lane = 0;
    std::uint64_t time = 0;
  };
  std::vector<Lane>& lanes(Span span) { return span == Span::kOpen ? open_ : queued_; }
  void begin(const TimelineRecord& record, Span span, std::vector<Change>& changes);

  std::unordered_map<std::uint32_t, Begun> begun_;
  std::vector<Lane> open_, queued_;
};

}  // namespace weir::timeline
