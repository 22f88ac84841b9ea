#pragma once

// Writes Python pickles as PyTorch's memory viewer reads them: protocol 2, and a fixed set of
// opcodes. https://docs.python.org/3/library/pickletools.html

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace weir::timeline {

/// Builds one pickle. Put values one after another; dictionaries and lists contain the values
/// between their begin and end.
class Pickle {
 public:
  Pickle() : bytes_("\x80\x02") {}

  void put(std::int64_t number);
  /// Puts valid UTF-8. Equal texts are written once.
  void put(std::string_view text);
  void put_false() { bytes_ += '\x89'; }

  void begin_dict() { bytes_ += "}("; }  // empty, mark
  void end_dict() { bytes_ += 'u'; }     // set items
  void begin_list() { bytes_ += "]("; }
  /// Call before each element of a list, so that a long list is written in parts. The viewer cannot
  /// take all elements at once.
  void next_of_list(std::size_t index) {
    if (index != 0 && index % kPart == 0) bytes_ += "e(";
  }
  void end_list() { bytes_ += 'e'; }
  /// Makes a tuple of the last two values.
  void end_pair() { bytes_ += '\x86'; }

  /// Memoizes the last value; `recall` puts it again.
  [[nodiscard]] std::uint32_t remember();
  void recall(std::uint32_t place);

  /// Returns the complete pickle. Do not put anything afterwards.
  [[nodiscard]] std::string finish() {
    bytes_ += '.';
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kPart = 1000;
  void put_little_endian(std::uint64_t value, int bytes);

  std::string bytes_;
  std::uint32_t remembered_ = 0;
  std::unordered_map<std::string, std::uint32_t> texts_;
};

}  // namespace weir::timeline
