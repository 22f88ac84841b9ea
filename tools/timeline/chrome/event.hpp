#pragma once

// One event of a Chrome trace as it stands in the file, and the reading of a whole file into them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/timeline/model/read_limits.hpp"

namespace weir::timeline::chrome {

/// What is taken of an event. Everything else in it is left out.
enum class Key : std::uint8_t {
  // Of the event.
  kPhase,
  kCategory,
  kName,
  kTime,      ///< nanoseconds
  kDuration,  ///< nanoseconds
  kProcess,
  kTrack,
  // Of its `args`, as our writer has them.
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
  // Of its `args`, as other writers have them.
  kCorrelation,
  kTotalAllocated,
  kTotalReserved,
  kMemoryBytes,
  kAddress,
  kDeviceId,
  kDeviceType,
  kNone,
};

/// An event. Reused for the next one, so that nothing is allocated for each.
class Event {
 public:
  enum class Type : std::uint8_t { kNone, kText, kNumber, kNegative, kBoolean, kOther };

  void clear() noexcept { present_ = 0; }
  void set_text(Key key, std::string_view text);
  /// A number of JSON. One that is no whole number, or too large, is there and has no value.
  void set_number(Key key, std::string_view digits);
  void set_boolean(Key key, bool value);
  void set_other(Key key);

  [[nodiscard]] bool has(Key key) const noexcept { return (present_ >> place(key) & 1U) != 0; }
  /// Empty where it is not there or no text.
  [[nodiscard]] std::string_view text(Key key) const noexcept {
    const Value& value = values_[place(key)];
    return has(key) && value.type == Type::kText ? std::string_view(value.text)
                                                 : std::string_view();
  }
  [[nodiscard]] bool is_text(Key key) const noexcept {
    return has(key) && values_[place(key)].type == Type::kText;
  }
  /// Zero where it is not there; nothing where it is, and is no number from 0 to `most`.
  [[nodiscard]] std::optional<std::uint64_t> number(Key key,
                                                    std::uint64_t most = ~std::uint64_t{0}) const {
    if (!has(key)) return 0;
    const Value& value = values_[place(key)];
    if (value.type != Type::kNumber || value.number > most) return std::nullopt;
    return value.number;
  }
  /// How far below zero it is; zero where it is not.
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

/// Who takes the events of a file, in its order.
class EventTaker {
 public:
  EventTaker() = default;
  EventTaker(const EventTaker&) = delete;
  EventTaker& operator=(const EventTaker&) = delete;
  virtual void take(const Event& event) = 0;

 protected:
  ~EventTaker() = default;
};

/// What a file has beside its events.
struct FileFacts {
  bool whole = false;              ///< false: it ends early
  std::uint64_t base_unix_ns = 0;  ///< what times are counted from, where the file says so
};

/// Hands each event of the file to `taker`. The file is an array of events, or an object with one
/// by the name of `traceEvents`. UsageError, naming the file and the byte, where it is no JSON or
/// beyond `limits`; one that ends early is what there is of it.
FileFacts read_events(const std::string& path, const ReadLimits& limits, EventTaker& taker);

/// Microseconds as nanoseconds: `12.345` is 12345. Further digits are left out. Empty where it is
/// negative, no number or too large.
[[nodiscard]] std::optional<std::uint64_t> parse_microseconds(std::string_view text);

}  // namespace weir::timeline::chrome
