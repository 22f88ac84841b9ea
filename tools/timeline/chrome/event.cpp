#include "tools/timeline/chrome/event.hpp"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "tools/timeline/chrome/gzip.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::chrome {
namespace {

/// Finds the keys of events, or of their `args`, by their texts. Built at compile time.
class KeyTable {
 public:
  constexpr explicit KeyTable(bool of_args) {
    constexpr std::string_view kArgs = "args.";
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (kKeys.at(i).starts_with(kArgs) != of_args) continue;
      const std::string_view text = kKeys.at(i).substr(of_args ? kArgs.size() : 0);
      std::size_t slot = hash(text);
      while (!texts_.at(slot).empty()) slot = (slot + 1) % kSlots;
      texts_.at(slot) = text;
      slots_.at(slot) = Key(i);
    }
  }
  [[nodiscard]] Key find(std::string_view text) const noexcept {
    if (text.empty()) return {};
    std::size_t slot = hash(text);
    while (!texts_[slot].empty() && texts_[slot] != text) slot = (slot + 1) % kSlots;
    return slots_[slot];
  }

 private:
  static constexpr std::size_t kSlots = 128;
  static constexpr std::size_t hash(std::string_view text) noexcept {
    const auto byte = [](char c) {
      return static_cast<std::size_t>(static_cast<unsigned char>(c));
    };
    return (text.size() * 31 + byte(text.front()) * 7 + byte(text.back()) * 3) % kSlots;
  }
  std::array<std::string_view, kSlots> texts_{};
  std::array<Key, kSlots> slots_;
};

constexpr KeyTable kEventTable(false);
constexpr KeyTable kArgumentTable(true);

bool is_time(Key key) { return key == Key("ts") || key == Key("dur"); }

/// RapidJSON's handler. Extracts the events.
class Finder {
 public:
  Finder(const std::string& path, const ReadLimits& limits, Input& input, const TakeEvent& take)
      : path_(path), limits_(limits), input_(input), take_(take) {}

  [[nodiscard]] std::uint64_t base_unix_ns() const noexcept { return base_unix_ns_; }

  // NOLINTBEGIN(readability-identifier-naming): RapidJSON's names
  bool Null() { return other(); }
  bool Bool(bool value) {
    if (key_ != Which()) event_.set_boolean(key_, value);
    return next();
  }
  bool RawNumber(const char* text, unsigned size, bool) {
    const std::string_view digits(text, size);
    if (key_ != Which()) event_.set_number(key_, digits);
    if (awaits_base_) {
      (void)std::from_chars(digits.data(), digits.data() + digits.size(), base_unix_ns_);
    }
    return next();
  }
  bool String(const char* text, unsigned size, bool) {
    check_length(size);
    if (key_ != Which()) event_.set_text(key_, {text, size});
    return next();
  }
  bool StartObject() {
    const bool is_args = at_args_;
    other();
    if (++depth_ > limits_.max_depth) refuse_depth();
    if (depth_ == event_depth_) event_.clear();
    in_args_ = in_args_ || (is_args && depth_ == event_depth_ + 1);
    return true;
  }
  bool Key(const char* text, unsigned size, bool) {
    check_length(size);
    input_.mark();
    const std::string_view name(text, size);
    if (event_depth_ == 0) {
      awaits_events_ = depth_ == 1 && name == "traceEvents";
      awaits_base_ = depth_ == 1 && name == "baseTimeNanoseconds";
    } else if (depth_ == event_depth_) {
      key_ = kEventTable.find(name);
      at_args_ = name == "args";
    } else if (in_args_ && depth_ == event_depth_ + 1) {
      key_ = kArgumentTable.find(name);
    }
    return true;
  }
  bool EndObject(unsigned) {
    if (depth_ == event_depth_) take_(event_);
    if (depth_ == event_depth_ + 1) in_args_ = false;
    --depth_;
    return next();
  }
  bool StartArray() {
    const bool has_events = depth_ == 0 || awaits_events_;
    other();
    if (++depth_ > limits_.max_depth) refuse_depth();
    if (has_events) event_depth_ = depth_ + 1;
    return true;
  }
  bool EndArray(unsigned) {
    if (depth_ + 1 == event_depth_) event_depth_ = 0;
    --depth_;
    return next();
  }
  bool Int(int) { return other(); }
  bool Uint(unsigned) { return other(); }
  bool Int64(std::int64_t) { return other(); }
  bool Uint64(std::uint64_t) { return other(); }
  bool Double(double) { return other(); }
  // NOLINTEND(readability-identifier-naming)

 private:
  bool next() {
    key_ = Which();
    at_args_ = awaits_events_ = awaits_base_ = false;
    input_.mark();
    return true;
  }
  bool other() {
    if (key_ != Which()) event_.set_other(key_);
    return next();
  }
  void check_length(std::size_t size) {
    if (size > limits_.max_string) {
      throw UsageError(path_ + ": before byte " + std::to_string(input_.Tell()) +
                       " is a text longer than " + format_bytes(Bytes{limits_.max_string}));
    }
  }
  [[noreturn]] void refuse_depth() {
    throw UsageError(path_ + ": at byte " + std::to_string(input_.Tell()) + " more than " +
                     std::to_string(limits_.max_depth) + " objects are nested");
  }

  using Which = chrome::Key;  // the method above hides it
  const std::string& path_;
  const ReadLimits& limits_;
  Input& input_;
  const TakeEvent& take_;
  Event event_;
  std::size_t depth_ = 0;
  std::size_t event_depth_ = 0;  ///< depth of the events' objects; 0: not among events
  Which key_ = Which();          ///< key of the next value
  bool at_args_ = false;         ///< the next value is an event's `args`
  bool in_args_ = false;
  bool awaits_events_ = false;
  bool awaits_base_ = false;
  std::uint64_t base_unix_ns_ = 0;
};

/// Handles a number with an exponent. Our own files have none.
std::optional<std::uint64_t> rounded(std::string_view text, double scale) {
  constexpr double kMost = 4e18;
  const double value = std::strtod(std::string(text).c_str(), nullptr) * scale;
  if (!(value >= 0 && value < kMost)) return std::nullopt;
  return nearest(value);
}

}  // namespace

std::optional<std::uint64_t> parse_microseconds(std::string_view text) {
  constexpr std::uint64_t kNanoseconds = 1000;
  std::uint64_t whole = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, whole);
  std::uint64_t result = 0;
  if (error != std::errc{} || __builtin_mul_overflow(whole, kNanoseconds, &result)) {
    return std::nullopt;
  }
  if (rest == end) return result;
  const bool plain =
      *rest == '.' && std::all_of(rest + 1, end, [](char c) { return c >= '0' && c <= '9'; });
  if (!plain) return rounded(text, kNanoseconds);
  std::uint64_t scale = kNanoseconds;
  for (const char* digit = rest + 1; digit != end; ++digit) {
    scale /= 10;
    const std::uint64_t more = scale * static_cast<std::uint64_t>(*digit - '0');
    if (__builtin_add_overflow(result, more, &result)) return std::nullopt;
  }
  return result;
}

void Event::set_text(Key key, std::string_view text) {
  Value& value = values_[key.place()];
  value.type = Type::kText;
  value.text.assign(text);
  present_ |= std::uint64_t{1} << key.place();
}

void Event::set_number(Key key, std::string_view digits) {
  Value& value = values_[key.place()];
  present_ |= std::uint64_t{1} << key.place();
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  std::optional<std::uint64_t> number;
  if (is_time(key)) {
    number = parse_microseconds(digits);
  } else {
    std::uint64_t parsed = 0;
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, parsed);
    if (error == std::errc{} && rest == end) number = parsed;
  }
  value.number = number.value_or(0);
  value.type = !number ? Type::kOther : negative && *number != 0 ? Type::kNegative : Type::kNumber;
}

void Event::set_boolean(Key key, bool boolean) {
  Value& value = values_[key.place()];
  value.type = Type::kBoolean;
  value.number = boolean ? 1 : 0;
  present_ |= std::uint64_t{1} << key.place();
}

void Event::set_other(Key key) {
  values_[key.place()].type = Type::kOther;
  present_ |= std::uint64_t{1} << key.place();
}

FileFacts read_events(const std::string& path, const ReadLimits& limits, const TakeEvent& take) {
  Input input(path, limits);
  Finder finder(path, limits, input, take);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result =
      reader.Parse<rapidjson::kParseNumbersAsStringsFlag>(input, finder);
  const bool at_end = input.at_end();
  if (result.IsError() && !at_end) {
    throw UsageError(path + ": not a timeline: at byte " + std::to_string(result.Offset()) + ": " +
                     rapidjson::GetParseError_En(result.Code()));
  }
  return {.whole = !result.IsError() && !input.cut(), .base_unix_ns = finder.base_unix_ns()};
}

}  // namespace weir::timeline::chrome
