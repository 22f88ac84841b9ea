#pragma once

// A checkpoint's header and the places of its sections; docs/data.md describes the bytes.
// Pure functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// A value by its name, such as `precision` and `bf16`. The name has at most 128 letters, digits,
/// `_`, `-` and `.`; the value is one line, perhaps empty.
struct Figure {
  std::string name;
  std::string value;
  friend bool operator==(const Figure&, const Figure&) = default;
};
using Figures = std::vector<Figure>;

/// A tensor in the file: float32 or any other words of 32 bits, kept bit for bit.
struct Section {
  std::string name;                  ///< as a figure's
  std::vector<std::size_t> extents;  ///< one to four, outermost first, each above zero
  friend bool operator==(const Section&, const Section&) = default;
};

struct CheckpointHeader {
  Figures settings;  ///< what a run that resumes must have, too
  Figures position;  ///< where the run stands: batches, the reader's place, a loss scale
  std::vector<Section> sections;
};

inline constexpr std::string_view kCheckpointMagic = "WEIRCKP\n";
inline constexpr std::uint32_t kCheckpointVersion = 1;
/// Where the header's lines begin, behind the magic, the version and the lines' length.
inline constexpr std::size_t kLinesOffset = 16;
inline constexpr std::size_t kMostLines = std::size_t{1} << 20U;  ///< bytes of all lines
inline constexpr std::size_t kChecksumBytes = 4;
/// Elements that share a checksum; a section's last chunk may have fewer.
inline constexpr std::size_t kChunkElements = std::size_t{1} << 20U;

/// Returns the header as lines, each with its line feed: `setting precision=bf16`, `position
/// batch=150`, `tensor w0=250000x1024`, in this order. Throws UsageError for a name or value that
/// is not allowed, a name that occurs twice, extents that are not, and more than kMostLines.
[[nodiscard]] std::vector<std::string> header_lines(const CheckpointHeader& header);

/// Return one of these lines.
[[nodiscard]] std::string setting_figure_line(const Figure& setting);
[[nodiscard]] std::string position_line(const Figure& figure);
[[nodiscard]] std::string section_line(const Section& section);

/// Returns everything of the file before the header's checksum.
[[nodiscard]] std::string encode_header(const CheckpointHeader& header);

/// A fault in a header's lines.
struct HeaderFault {
  std::size_t offset = 0;  ///< in the lines
  std::string expected;
  std::string found;
};
/// Reads lines into `header`. Returns whether they are such lines; if not, says why in `fault`.
[[nodiscard]] bool decode_lines(std::string_view lines, CheckpointHeader& header,
                                HeaderFault& fault);

/// Returns the number of a section's elements; below 2^60 in a header that was read or written.
[[nodiscard]] std::size_t elements_of(const Section& section) noexcept;
/// Returns the bytes of a section with its checksums.
[[nodiscard]] std::size_t bytes_of(const Section& section) noexcept;

}  // namespace weir
