#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/data/input_file.hpp"

namespace weir {

/// Reads a checkpoint, its header first. Every refusal is a UsageError of one line: option, file,
/// offset, expected, found. One thread at a time.
class CheckpointReader {
 public:
  /// Reads the header. Refuses a file of another kind or version, a damaged header, and a file that
  /// is not as long as its header says.
  CheckpointReader(std::string option, std::string path);

  [[nodiscard]] const CheckpointHeader& header() const noexcept { return header_; }
  /// Returns a whole number of the position. Refuses a file without it.
  [[nodiscard]] std::uint64_t number(std::string_view name) const;
  /// Returns a value of the position as text. Refuses a file without it.
  [[nodiscard]] const std::string& text(std::string_view name) const;

  /// Refuses a file whose settings or sections are not these, naming the first that differs.
  void require(const Figures& settings, std::span<const Section> sections) const;

  /// Gets elements of a section, from `first` on, that are known to be what was written.
  using Sink =
      std::function<void(std::size_t section, std::size_t first, std::span<const float> elements)>;
  /// Hands all sections to `sink`, chunk by chunk in order, with one chunk (4 MiB) in memory.
  /// Refuses the first damaged chunk.
  void read(const Sink& sink) const;

 private:
  [[nodiscard]] std::size_t sections_offset() const noexcept;

  InputFile file_;
  std::string lines_;
  CheckpointHeader header_;
  Checksum header_checksum_;
};

}  // namespace weir
