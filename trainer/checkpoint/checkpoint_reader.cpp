#include "trainer/checkpoint/checkpoint_reader.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/printable.hpp"

namespace weir {
namespace {

constexpr std::size_t kVersionOffset = kCheckpointMagic.size();
constexpr std::size_t kLengthOffset = kVersionOffset + 4;
static_assert(kLengthOffset + 4 == kLinesOffset && kLinesOffset <= InputFile::kHeader);

/// Returns a line as messages show it.
std::string shown(std::string_view line) {
  constexpr std::size_t kMost = 80;
  if (line.ends_with('\n')) line.remove_suffix(1);
  return printable(line.substr(0, kMost), true);
}

/// Returns the size of the lines.
std::size_t read_length(const InputFile& file) {
  if (const std::uint32_t version = file.little_endian(kVersionOffset);
      version != kCheckpointVersion) {
    file.refuse_at(kVersionOffset, "version " + std::to_string(kCheckpointVersion),
                   std::to_string(version));
  }
  const std::size_t length = file.little_endian(kLengthOffset);
  if (length > kMostLines) {
    file.refuse_at(kLengthOffset, "a header of at most " + std::to_string(kMostLines) + " bytes",
                   std::to_string(length));
  }
  file.require_at_least(kLinesOffset + length + kChecksumBytes, "the header of a checkpoint");
  return length;
}

}  // namespace

CheckpointReader::CheckpointReader(std::string option, std::string path)
    : file_(std::move(option), std::move(path)) {
  file_.require_magic(kCheckpointMagic, "a checkpoint");
  file_.require_at_least(kLinesOffset, "the header of a checkpoint");
  lines_.resize(read_length(file_));
  file_.read_at(kLinesOffset, std::as_writable_bytes(std::span(lines_)));
  header_checksum_.add(std::as_bytes(std::span(file_.bytes()).first(kLinesOffset)));
  header_checksum_.add(std::as_bytes(std::span(lines_)));
  file_.require_checksum(kLinesOffset + lines_.size(), header_checksum_.value(), "the header");
  HeaderFault fault;
  if (!decode_lines(lines_, header_, fault)) {
    file_.refuse_at(kLinesOffset + fault.offset, fault.expected, fault.found);
  }
  constexpr std::size_t kTooLong = std::size_t{1} << 62U;  // no file is; and no sum overflows
  std::size_t end = sections_offset();
  for (const Section& section : header_.sections) end = std::min(end + bytes_of(section), kTooLong);
  file_.require_size(end, "a checkpoint of " + format_count(header_.sections.size(), "tensor"));
}

std::size_t CheckpointReader::sections_offset() const noexcept {
  return kLinesOffset + lines_.size() + kChecksumBytes;
}

const std::string& CheckpointReader::text(std::string_view name) const {
  const auto figure = std::ranges::find(header_.position, name, &Figure::name);
  if (figure == header_.position.end()) {
    file_.refuse_at(kLinesOffset, "a line position " + std::string(name) + "=...", "none");
  }
  return figure->value;
}

std::uint64_t CheckpointReader::number(std::string_view name) const {
  const std::string& value = text(name);
  if (const auto number = parse_whole(value)) return *number;
  file_.refuse_at(kLinesOffset, "a line position " + std::string(name) + "=NUMBER",
                  "'" + shown(value) + "'");
}

void CheckpointReader::require(const Figures& settings, std::span<const Section> sections) const {
  std::size_t offset = kLinesOffset;
  const auto compare = [&](const std::string& kind, const std::string& run,
                           const std::string& file) {
    const auto text = [&](const std::string& line) {
      return line.empty() ? "no further " + kind : shown(line);
    };
    if (run != file) file_.refuse_at(offset, text(run) + " as in this run", text(file));
    offset += file.size();
  };
  const auto line_or_none = [](const auto& all, std::size_t i, const auto& line_of) {
    return i < all.size() ? line_of(all[i]) : std::string();
  };
  for (std::size_t i = 0; i < std::max(settings.size(), header_.settings.size()); ++i) {
    compare("setting", line_or_none(settings, i, setting_figure_line),
            line_or_none(header_.settings, i, setting_figure_line));
  }
  for (const Figure& figure : header_.position) offset += position_line(figure).size();
  for (std::size_t i = 0; i < std::max(sections.size(), header_.sections.size()); ++i) {
    compare("tensor", line_or_none(sections, i, section_line),
            line_or_none(header_.sections, i, section_line));
  }
}

void CheckpointReader::read(const Sink& sink) const {
  std::vector<float> chunk;
  Checksum checksum = header_checksum_;
  std::size_t offset = sections_offset();
  for (std::size_t i = 0; i < header_.sections.size(); ++i) {
    const std::size_t elements = elements_of(header_.sections[i]);
    for (std::size_t first = 0; first < elements; first += kChunkElements) {
      chunk.resize(std::min(kChunkElements, elements - first));
      const std::span<float> piece(chunk);
      const auto bytes = std::as_writable_bytes(piece);
      file_.read_at(offset, bytes);
      checksum.add(bytes);
      offset += bytes.size();
      file_.require_checksum(offset, checksum.value(),
                             "tensor " + header_.sections[i].name + " up to there");
      offset += kChecksumBytes;
      sink(i, first, piece);
    }
  }
}

}  // namespace weir
