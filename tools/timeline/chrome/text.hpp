#pragma once

// Builds JSON text without an allocation per event.

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Escapes `text` for a JSON string. The result is valid UTF-8; invalid bytes become U+FFFD. `</`
/// and `<!` begin with \u003c, so that `</script>` cannot end a page that embeds the file. Other
/// `<` stay, because Perfetto shows \u003c literally. A final backslash becomes \u005c: Perfetto
/// takes a quote after a backslash as part of the text and refuses the file.
[[nodiscard]] std::string escaped(std::string_view text);

/// Replaces each invalid byte of `text` by U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// A growing buffer. Much faster than std::string for pieces of a few bytes.
class TextBuffer {
 public:
  TextBuffer() : bytes_(1U << 16U) {}

  void put(std::string_view text) {
    std::memcpy(room(text.size()), text.data(), text.size());
    size_ += text.size();
  }
  void put(char c) {
    *room(1) = c;
    ++size_;
  }
  template <std::unsigned_integral Number>
  void put(Number number) {
    constexpr std::size_t kMostDigits = 20;
    char* const first = room(kMostDigits);
    size_ +=
        static_cast<std::size_t>(std::to_chars(first, first + kMostDigits, number).ptr - first);
  }
  /// Writes nanoseconds as microseconds with three decimals.
  void put_time(std::uint64_t nanoseconds) {
    put(nanoseconds / 1000);
    const auto rest = static_cast<unsigned>(nanoseconds % 1000);
    char* const place = room(4);
    place[0] = '.';
    place[1] = static_cast<char>('0' + rest / 100);
    place[2] = static_cast<char>('0' + rest / 10 % 10);
    place[3] = static_cast<char>('0' + rest % 10);
    size_ += 4;
  }

  [[nodiscard]] std::string_view text() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept { size_ = 0; }
  /// Removes the last byte.
  void drop_last() noexcept { --size_; }

 private:
  char* room(std::size_t size) {
    if (bytes_.size() - size_ < size) bytes_.resize((size_ + size) * 2);
    return bytes_.data() + size_;
  }

  std::vector<char> bytes_;
  std::size_t size_ = 0;
};

}  // namespace weir::timeline

namespace weir::timeline::chrome {

// Words of the Chrome format that the writer and the reader share.

inline constexpr unsigned kVersion = 1;
inline constexpr std::string_view kBeginEvent = "weir_timeline";    ///< ph M: the process
inline constexpr std::string_view kEndEvent = "weir_timeline_end";  ///< ph M: complete, lost
inline constexpr std::string_view kOpen = "open";                   ///< cat: kAdmit to kClose
inline constexpr std::string_view kInFlight = "in flight";          ///< cat: kClose to kSettle
inline constexpr std::string_view kFlow = "flow";                   ///< cat: kSubmit to kExecute
inline constexpr std::string_view kRecording = "recording";         ///< cat: a note for people
inline constexpr std::string_view kUnnamedBatch = "batch";  ///< name of a batch without a name

/// Returns the words of `detail`, indexed by its value; empty for kinds with a numeric `detail`.
[[nodiscard]] std::span<const std::string_view> detail_words(TimelineKind kind) noexcept;
/// Returns the kind for a word; nothing if there is none.
[[nodiscard]] std::optional<TimelineKind> kind_of(std::string_view word) noexcept;

}  // namespace weir::timeline::chrome
