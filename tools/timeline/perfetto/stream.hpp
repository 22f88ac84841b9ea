#pragma once

// One sequence of packets, Perfetto's "trusted packet sequence". Each time base, name and source is
// written once and then referred to by a small number.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "tools/timeline/perfetto/fields.hpp"
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
