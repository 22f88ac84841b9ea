#include "trainer/checkpoint/checkpoint_format.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "tools/program/printable.hpp"
#include "trainer/data/input_file.hpp"

namespace weir {
namespace {

constexpr std::size_t kMostExtents = 4;
/// Below it no sum of sizes overflows.
constexpr std::size_t kMostElements = std::size_t{1} << 60U;
constexpr std::size_t kMostName = 128;
/// The kinds of line, in the order in which a header has them.
constexpr std::array<std::string_view, 3> kKinds{"setting", "position", "tensor"};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostName && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

bool is_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < ' ' || code == 0x7F;
  });
}

bool are_extents(std::span<const std::size_t> extents) {
  if (extents.empty() || extents.size() > kMostExtents) return false;
  std::size_t elements = 1;
  for (const std::size_t extent : extents) {
    if (extent == 0 || extent > kMostElements / elements) return false;
    elements *= extent;
  }
  return true;
}

/// Reads `250000x1024`; nothing if the text is not how section_line writes extents.
std::optional<std::vector<std::size_t>> parse_extents(std::string_view text) {
  std::vector<std::size_t> extents;
  for (bool more = true; more;) {
    const std::size_t end = text.find('x');
    const std::string_view digits = text.substr(0, end);
    const auto extent = parse_whole(digits);
    if (!extent || std::to_string(*extent) != digits) return std::nullopt;
    extents.push_back(*extent);
    more = end != std::string_view::npos && extents.size() <= kMostExtents;
    if (more) text.remove_prefix(end + 1);
  }
  return are_extents(extents) ? std::optional(extents) : std::nullopt;
}

std::string figure_line(std::string_view kind, const Figure& figure) {
  return std::string(kind) + " " + figure.name + "=" + figure.value + "\n";
}

/// Reads line after line of one header.
class Decoder {
 public:
  Decoder(CheckpointHeader& header, HeaderFault& fault) : header_(header), fault_(fault) {}

  bool add(std::size_t offset, std::string_view line) {
    fault_.offset = offset;
    fault_.found = "'" + printable(line.substr(0, kMostShown), true) + "'";
    const std::size_t space = line.find(' ');
    const std::size_t equals = line.find('=');
    if (space > equals || equals == std::string_view::npos) {
      return refuse("a line such as setting NAME=VALUE");
    }
    const auto kind =
        static_cast<std::size_t>(std::ranges::find(kKinds, line.substr(0, space)) - kKinds.begin());
    if (kind == kKinds.size() || kind < last_kind_) {
      return refuse("settings, then positions, then tensors");
    }
    if (kind != last_kind_) names_.clear();
    last_kind_ = kind;
    const std::string name(line.substr(space + 1, equals - space - 1));
    if (!is_name(name)) return refuse("a name of at most 128 letters, digits, '_', '-' and '.'");
    if (!names_.insert(name).second) return refuse("no name twice");
    return add_value(name, line.substr(equals + 1));
  }

 private:
  static constexpr std::size_t kMostShown = 80;

  bool refuse(std::string_view expected) {
    fault_.expected = expected;
    return false;
  }

  bool add_value(const std::string& name, std::string_view value) {
    if (last_kind_ == 2) {
      auto extents = parse_extents(value);
      if (!extents) return refuse("1 to 4 extents from 1 on, such as 512x1024");
      header_.sections.push_back({name, *std::move(extents)});
      return true;
    }
    if (!is_value(value)) return refuse("a value without control characters");
    (last_kind_ == 0 ? header_.settings : header_.position).push_back({name, std::string(value)});
    return true;
  }

  CheckpointHeader& header_;
  HeaderFault& fault_;
  std::size_t last_kind_ = 0;  ///< its place in kKinds
  std::set<std::string, std::less<>> names_;
};

}  // namespace

std::string setting_figure_line(const Figure& setting) { return figure_line(kKinds[0], setting); }

std::string position_line(const Figure& figure) { return figure_line(kKinds[1], figure); }

std::string section_line(const Section& section) {
  std::string line = std::string(kKinds[2]) + " " + section.name;
  char before = '=';
  for (const std::size_t extent : section.extents) {
    line += before + std::to_string(extent);
    before = 'x';
  }
  return line + "\n";
}

std::vector<std::string> header_lines(const CheckpointHeader& header) {
  std::vector<std::string> lines;
  for (const Figure& figure : header.settings) lines.push_back(setting_figure_line(figure));
  for (const Figure& figure : header.position) lines.push_back(position_line(figure));
  for (const Section& section : header.sections) lines.push_back(section_line(section));
  // What could not be read back is refused by who would read it.
  CheckpointHeader read;
  HeaderFault fault;
  Decoder decoder(read, fault);
  std::size_t size = 0;
  for (const std::string& line : lines) {
    if (!decoder.add(size, std::string_view(line).substr(0, line.size() - 1))) {
      throw UsageError("a checkpoint's header: expected " + fault.expected + ", found " +
                       fault.found);
    }
    size += line.size();
  }
  if (size > kMostLines) {
    throw UsageError("a checkpoint's header: expected at most " + std::to_string(kMostLines) +
                     " bytes of lines, found " + std::to_string(size));
  }
  return lines;
}

std::string encode_header(const CheckpointHeader& header) {
  std::string lines;
  for (const std::string& line : header_lines(header)) lines += line;
  std::string text(kCheckpointMagic);
  append_little_endian(text, kCheckpointVersion);
  append_little_endian(text, static_cast<std::uint32_t>(lines.size()));
  return text + lines;
}

bool decode_lines(std::string_view lines, CheckpointHeader& header, HeaderFault& fault) {
  Decoder decoder(header, fault);
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    if (end == std::string_view::npos) {
      fault = {.offset = lines.size(), .expected = "a line feed", .found = "the end of the lines"};
      return false;
    }
    if (!decoder.add(begin, lines.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

std::size_t elements_of(const Section& section) noexcept {
  std::size_t elements = 1;
  for (const std::size_t extent : section.extents) elements *= extent;
  return elements;
}

std::size_t bytes_of(const Section& section) noexcept {
  const std::size_t elements = elements_of(section);
  const std::size_t chunks = (elements + kChunkElements - 1) / kChunkElements;
  return elements * sizeof(float) + chunks * kChecksumBytes;
}

}  // namespace weir
