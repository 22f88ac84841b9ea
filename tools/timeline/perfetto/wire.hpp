#pragma once

// The part of the protocol-buffer wire format that a trace needs.
// https://protobuf.dev/programming-guides/encoding/

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::timeline::perfetto {

// Field numbers of Perfetto's trace format that we write, and our own ones.
// https://perfetto.dev/docs/reference/trace-packet-proto

inline constexpr std::uint32_t kTracePacket = 1;
namespace packet {
inline constexpr std::uint32_t kClockSnapshot = 6;
inline constexpr std::uint32_t kTimestamp = 8;
inline constexpr std::uint32_t kSequence = 10;
inline constexpr std::uint32_t kTrackEvent = 11;
inline constexpr std::uint32_t kInterned = 12;
inline constexpr std::uint32_t kSequenceFlags = 13;
inline constexpr std::uint32_t kDeflated = 50;  ///< packets, deflated by zlib
inline constexpr std::uint32_t kTimestampClock = 58;
inline constexpr std::uint32_t kDefaults = 59;
inline constexpr std::uint32_t kTrackDescriptor = 60;
// Our fields. Perfetto skips unknown fields.
inline constexpr std::uint32_t kOurProcess = 90001;  ///< a process begins: kInfo...
inline constexpr std::uint32_t kOurName = 90002;     ///< a name: its number and its text
inline constexpr std::uint32_t kOurRecords = 90003;  ///< records, packed by Packed
inline constexpr std::uint32_t kOurEnd = 90004;      ///< a process ends
}  // namespace packet
namespace event {
inline constexpr std::uint32_t kCategory = 3;
inline constexpr std::uint32_t kAnnotation = 4;
inline constexpr std::uint32_t kType = 9;
inline constexpr std::uint32_t kName = 10;
inline constexpr std::uint32_t kTrack = 11;
inline constexpr std::uint32_t kCounter = 30;
inline constexpr std::uint32_t kSource = 34;
inline constexpr std::uint32_t kFlow = 36;  ///< a varint; the newer field takes twice the bytes
enum Type : std::uint8_t { kBegin = 1, kEnd = 2, kInstant = 3, kValue = 4 };
}  // namespace event
/// Fields of our packets.
namespace ours {
inline constexpr std::uint64_t kVersion = 1;
inline constexpr std::uint32_t kVersionField = 1;
inline constexpr std::uint32_t kPid = 2;
inline constexpr std::uint32_t kRank = 3;
inline constexpr std::uint32_t kProgram = 4;
inline constexpr std::uint32_t kHost = 5;
inline constexpr std::uint32_t kBoot = 6;
inline constexpr std::uint32_t kMonotonic = 7;
inline constexpr std::uint32_t kUnix = 8;
inline constexpr std::uint32_t kNumber = 1;
inline constexpr std::uint32_t kText = 2;
inline constexpr std::uint32_t kLost = 1;
inline constexpr std::uint32_t kCut = 2;
}  // namespace ours

}  // namespace weir::timeline::perfetto

namespace weir::timeline::wire {

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80U));
    value >>= 7U;
  }
  out.push_back(static_cast<char>(value));
}
/// Maps small numbers of either sign to small numbers.
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1U) ^ (~(value & 1U) + 1U));
}

/// The layout of a field's value.
enum class Type : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

inline void put_key(std::string& out, std::uint32_t field, Type type) {
  put_varint(out, (std::uint64_t{field} << 3U) | static_cast<std::uint64_t>(type));
}
inline void put(std::string& out, std::uint32_t field, std::uint64_t value) {
  put_key(out, field, Type::kVarint);
  put_varint(out, value);
}
inline void put(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_key(out, field, Type::kBytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

/// A message within `out`, from here to the end of the scope.
class Message {
 public:
  Message(std::string& out, std::uint32_t field) : out_(out) {
    put_key(out, field, Type::kBytes);
    out.push_back(0);
    begin_ = out.size();
  }
  ~Message() {
    const std::size_t size = out_.size() - begin_;
    if (size < 0x80) {
      out_[begin_ - 1] = static_cast<char>(size);
      return;
    }
    std::string length;
    put_varint(length, size);
    out_.replace(begin_ - 1, 1, length);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

 private:
  std::string& out_;
  std::size_t begin_;
};

/// Takes a varint off the front of `in`. Returns nothing and leaves `in` unchanged if it is
/// incomplete.
[[nodiscard]] inline std::optional<std::uint64_t> take_varint(std::string_view& in) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < in.size() && i < 10; ++i) {
    const auto byte = static_cast<std::uint8_t>(in[i]);
    value |= std::uint64_t{byte & 0x7FU} << (7 * i);
    if (byte < 0x80) {
      in.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

/// One field of a message.
struct Field {
  std::uint32_t number = 0;
  Type type = Type::kVarint;
  std::uint64_t value = 0;   ///< unless kBytes
  std::string_view bytes{};  ///< of kBytes
};

/// Takes a field off the front of `in`. Returns nothing if it is incomplete.
[[nodiscard]] std::optional<Field> take_field(std::string_view& in) noexcept;

}  // namespace weir::timeline::wire
