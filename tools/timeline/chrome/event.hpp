#pragma once

// One event of a Chrome trace as it is in the file, and a parser of whole files.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::chrome {

/// The keys that are read. All others are ignored.
enum class Key : std::uint8_t {
  // Keys of the event.
  kPhase,
  kCategory,
  kName,
  kTime,      ///< nanoseconds
  kDuration,  ///< nanoseconds
  kProcess,
  kTrack,
  // Keys of `args` as our writer writes them.
  kArgName,
  kBatch,
  kId,
  kBytes,
  kAsked,
  kStream,
  kSite,
  kDetail,
  kSequence,
  kAllocated,
  kAwaiting,
  kCached,
  kSource,
  kDevice,
  kThread,
  kVersion,
  kPid,
  kRank,
  kProgram,
  kHost,
  kBoot,
  kMonotonic,
  kUnix,
  kComplete,
  kLost,
  // Keys of `args` as other writers write them.
  kCorrelation,
  kTotalAllocated,
  kTotalReserved,
  kMemoryBytes,
  kAddress,
  kDeviceId,
  kDeviceType,
  kNone,
};

/// An event. Reused for the next one, to avoid an allocation per event.
class Event {
 public:
  enum class Type : std::uint8_t { kNone, kText, kNumber, kNegative, kBoolean, kOther };

  void clear() noexcept { present_ = 0; }
  void set_text(Key key, std::string_view text);
  /// Sets a JSON number. A number that is not whole or too large is present but has no value.
  void set_number(Key key, std::string_view digits);
  void set_boolean(Key key, bool value);
  void set_other(Key key);

  [[nodiscard]] bool has(Key key) const noexcept { return (present_ >> place(key) & 1U) != 0; }
  /// Returns the text; empty if it is missing or not a text.
  [[nodiscard]] std::string_view text(Key key) const noexcept {
    const Value& value = values_[place(key)];
    return has(key) && value.type == Type::kText ? std::string_view(value.text)
                                                 : std::string_view();
  }
  [[nodiscard]] bool is_text(Key key) const noexcept {
    return has(key) && values_[place(key)].type == Type::kText;
  }
  /// Returns the number; zero if missing, nothing if it is not a number from 0 to `most`.
  [[nodiscard]] std::optional<std::uint64_t> number(Key key,
                                                    std::uint64_t most = ~std::uint64_t{0}) const {
    if (!has(key)) return 0;
    const Value& value = values_[place(key)];
    if (value.type != Type::kNumber || value.number > most) return std::nullopt;
    return value.number;
  }
  /// Returns how far the number is below zero; zero if it is not.
  [[nodiscard]] std::uint64_t below_zero(Key key) const noexcept {
    const Value& value = values_[place(key)];
    return has(key) && value.type == Type::kNegative ? value.number : 0;
  }
  [[nodiscard]] bool is_true(Key key) const noexcept {
    const Value& value = values_[place(key)];
    return has(key) && value.type == Type::kBoolean && value.number != 0;
  }

 private:
  struct Value {
    Type type = Type::kNone;
    std::uint64_t number = 0;
    std::string text;
  };
  static constexpr std::size_t place(Key key) noexcept { return static_cast<std::size_t>(key); }
  static_assert(static_cast<std::size_t>(Key::kNone) < 64);

  std::uint64_t present_ = 0;
  std::array<Value, static_cast<std::size_t>(Key::kNone)> values_;
};

/// Receives the events of a file, in order.
class EventTaker {
 public:
  EventTaker() = default;
  EventTaker(const EventTaker&) = delete;
  EventTaker& operator=(const EventTaker&) = delete;
  virtual void take(const Event& event) = 0;

 protected:
  ~EventTaker() = default;
};

/// Facts about a file besides its events.
struct FileFacts {
  bool whole = false;              ///< false: truncated
  std::uint64_t base_unix_ns = 0;  ///< zero of its times, if the file says so
};

/// Passes each event of the file to `taker`. The file is an array of events, or an object with such
/// an array named `traceEvents`. Throws UsageError, naming the file and the byte, if it is not JSON
/// or exceeds `limits`. Reads a truncated file up to its end.
FileFacts read_events(const std::string& path, const ReadLimits& limits, EventTaker& taker);

/// Converts microseconds to nanoseconds: `12.345` is 12345. Drops further digits. Returns nothing
/// for negative, invalid or too large numbers.
[[nodiscard]] std::optional<std::uint64_t> parse_microseconds(std::string_view text);

}  // namespace weir::timeline::chrome
