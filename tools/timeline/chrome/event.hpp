#pragma once

// One event of a Chrome trace as it is in the file, and a parser of whole files.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::chrome {

/// The keys of events that are read, and of their `args`. All others are ignored.
inline constexpr std::array<std::string_view, 39> kKeys{
    "ph",
    "cat",
    "name",
    "ts",   // microseconds, which are read as nanoseconds
    "dur",  // the same
    "pid",
    "tid",
    "args.name",  // those of our writer
    "args.batch",
    "args.id",
    "args.bytes",
    "args.asked",
    "args.stream",
    "args.site",
    "args.detail",
    "args.seq",
    "args.alloc",
    "args.await",
    "args.cached",
    "args.source",
    "args.device",
    "args.thread",
    "args.version",
    "args.pid",
    "args.rank",
    "args.program",
    "args.host",
    "args.boot",
    "args.monotonic_ns",
    "args.unix_ns",
    "args.complete",
    "args.lost",
    "args.correlation",  // those of other writers
    "args.Total Allocated",
    "args.Total Reserved",
    "args.Bytes",
    "args.Addr",
    "args.Device Id",
    "args.Device Type"};

/// One of them, by its text: `ts`, `args.id`. A text that is none of them does not compile.
class Key {
 public:
  constexpr Key() noexcept = default;  ///< none
  // NOLINTNEXTLINE(google-explicit-constructor): a text is enough
  consteval Key(const char* text) {
    for (place_ = 0; kKeys.at(place_) != text;) ++place_;
  }
  constexpr explicit Key(std::size_t place) noexcept : place_(place) {}

  [[nodiscard]] constexpr std::size_t place() const noexcept { return place_; }
  [[nodiscard]] constexpr bool operator==(const Key&) const noexcept = default;

 private:
  std::size_t place_ = kKeys.size();
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

  [[nodiscard]] bool has(Key key) const noexcept { return (present_ >> key.place() & 1U) != 0; }
  /// Returns the text; empty if it is missing or not a text.
  [[nodiscard]] std::string_view text(Key key) const noexcept {
    const Value& value = values_[key.place()];
    return has(key) && value.type == Type::kText ? std::string_view(value.text)
                                                 : std::string_view();
  }
  [[nodiscard]] bool is_text(Key key) const noexcept {
    return has(key) && values_[key.place()].type == Type::kText;
  }
  /// Returns the number; zero if missing, nothing if it is not a number from 0 to `most`.
  [[nodiscard]] std::optional<std::uint64_t> number(Key key,
                                                    std::uint64_t most = ~std::uint64_t{0}) const {
    if (!has(key)) return 0;
    const Value& value = values_[key.place()];
    if (value.type != Type::kNumber || value.number > most) return std::nullopt;
    return value.number;
  }
  /// Returns how far the number is below zero; zero if it is not.
  [[nodiscard]] std::uint64_t below_zero(Key key) const noexcept {
    const Value& value = values_[key.place()];
    return has(key) && value.type == Type::kNegative ? value.number : 0;
  }
  [[nodiscard]] bool is_true(Key key) const noexcept {
    const Value& value = values_[key.place()];
    return has(key) && value.type == Type::kBoolean && value.number != 0;
  }

 private:
  struct Value {
    Type type = Type::kNone;
    std::uint64_t number = 0;
    std::string text;
  };
  static_assert(kKeys.size() <= 64);

  std::uint64_t present_ = 0;
  std::array<Value, kKeys.size()> values_;
};

/// Receives the events of a file, in order.
using TakeEvent = std::function<void(const Event& event)>;

/// Facts about a file besides its events.
struct FileFacts {
  bool whole = false;              ///< false: truncated
  std::uint64_t base_unix_ns = 0;  ///< zero of its times, if the file says so
};

/// Passes each event of the file to `take`. The file is an array of events, or an object with such
/// an array named `traceEvents`. Throws UsageError, naming the file and the byte, if it is not JSON
/// or exceeds `limits`. Reads a truncated file up to its end.
FileFacts read_events(const std::string& path, const ReadLimits& limits, const TakeEvent& take);

/// Converts microseconds to nanoseconds: `12.345` is 12345. Drops further digits. Returns nothing
/// for negative, invalid or too large numbers.
[[nodiscard]] std::optional<std::uint64_t> parse_microseconds(std::string_view text);

}  // namespace weir::timeline::chrome
