#pragma once

// Field numbers of Perfetto's trace format that we write, and our own ones.
// https://perfetto.dev/docs/reference/trace-packet-proto

#include <cstdint>

namespace weir::timeline::perfetto {

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
