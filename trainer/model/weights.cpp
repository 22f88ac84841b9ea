#include "trainer/model/weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "allocator/base/error.hpp"
#include "tools/program/numbers.hpp"
#include "trainer/data/input_file.hpp"

namespace weir {
namespace {

constexpr std::string_view kMagic = "WEIRMLP\n";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kVersionOffset = kMagic.size();
constexpr std::size_t kWidthCountOffset = kVersionOffset + 4;
constexpr std::size_t kWidthsOffset = kWidthCountOffset + 4;
constexpr std::size_t kChecksumSize = 4;
/// Bounds above all our models, below where sizes overflow.
constexpr std::uint32_t kMostWidths = 64;
constexpr std::uint32_t kMostWidth = 1U << 24U;
static_assert(kWidthsOffset + std::size_t{4} * kMostWidths <= InputFile::kHeader);

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1U) != 0 ? 0xEDB88320U ^ (value >> 1U) : value >> 1U;
    }
    table[i] = value;
  }
  return table;
}

void append(std::string& text, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    text.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> shift)));
  }
}

/// Elements of each parameter: W_0, b_0, W_1, …
std::vector<std::size_t> parameter_sizes(std::span<const std::size_t> widths) {
  std::vector<std::size_t> sizes;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    sizes.push_back(widths[l] * widths[l + 1]);
    sizes.push_back(widths[l + 1]);
  }
  return sizes;
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    std::array<char, 8> pair{};
    std::snprintf(pair.data(), pair.size(), "%02x", unsigned{byte});
    text += (text.empty() ? "" : " ") + std::string(pair.data());
  }
  return text;
}

void require_magic(const InputFile& file) {
  const std::span<const std::uint8_t> start =
      std::span(file.bytes()).first(std::min(kMagic.size(), file.size()));
  const bool same = std::equal(start.begin(), start.end(), kMagic.begin(),
                               [](auto a, char b) { return a == static_cast<std::uint8_t>(b); });
  if (!same) file.refuse_at(0, "WEIRMLP and a line feed (a weights file)", hex(start));
  file.require_at_least(kWidthsOffset, "the header of a weights file");
}

std::vector<std::size_t> read_widths(const InputFile& file) {
  if (const std::uint32_t version = file.little_endian(kVersionOffset); version != kFormatVersion) {
    file.refuse_at(kVersionOffset, "version " + std::to_string(kFormatVersion),
                   std::to_string(version));
  }
  const std::uint32_t count = file.little_endian(kWidthCountOffset);
  if (count < 2 || count > kMostWidths) {
    file.refuse_at(kWidthCountOffset, "a number of widths from 2 to " + std::to_string(kMostWidths),
                   std::to_string(count));
  }
  file.require_at_least(kWidthsOffset + std::size_t{count} * 4, "the widths");
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t offset = kWidthsOffset + 4 * i;
    const std::uint32_t width = file.little_endian(offset);
    if (width == 0 || width > kMostWidth) {
      file.refuse_at(offset, "a width from 1 to " + std::to_string(kMostWidth),
                     std::to_string(width));
    }
    widths.push_back(width);
  }
  return widths;
}

void require_checksum(const InputFile& file) {
  const std::size_t offset = file.size() - kChecksumSize;
  const std::uint32_t expected = crc32(std::span(file.bytes()).first(offset));
  const std::uint32_t found = file.little_endian(offset);
  if (found == expected) return;
  file.refuse_at(offset, "the checksum " + format_hex(expected, 8) + " of what is before it",
                 format_hex(found, 8) + " (the file is damaged)");
}

}  // namespace

std::uint32_t crc32(std::span<const std::uint8_t> bytes) noexcept {
  static constexpr std::array<std::uint32_t, 256> kTable = make_crc_table();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const std::uint8_t byte : bytes) crc = kTable[(crc ^ byte) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

std::string format_widths(std::span<const std::size_t> widths) {
  std::string text;
  for (const std::size_t width : widths)
    text += (text.empty() ? "" : " -> ") + std::to_string(width);
  return text;
}

std::string encode_weights(const SavedWeights& weights) {
  const std::vector<std::size_t> sizes = parameter_sizes(weights.widths);
  const bool fits = std::equal(
      sizes.begin(), sizes.end(), weights.parameters.begin(), weights.parameters.end(),
      [](std::size_t size, const std::vector<float>& values) { return values.size() == size; });
  if (!fits) {
    throw UsageError("encode_weights: the parameters are not those of " +
                     format_widths(weights.widths));
  }
  std::string text(kMagic);
  append(text, kFormatVersion);
  append(text, static_cast<std::uint32_t>(weights.widths.size()));
  for (const std::size_t width : weights.widths) append(text, static_cast<std::uint32_t>(width));
  for (const std::vector<float>& values : weights.parameters) {
    for (const float value : values) append(text, std::bit_cast<std::uint32_t>(value));
  }
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  append(text, crc32(bytes));
  return text;
}

SavedWeights read_weights(const std::string& option, const std::string& path) {
  InputFile file(option, path);
  require_magic(file);
  SavedWeights weights{.widths = read_widths(file), .parameters = {}};
  std::size_t offset = kWidthsOffset + 4 * weights.widths.size();
  std::size_t end = offset + kChecksumSize;
  for (const std::size_t size : parameter_sizes(weights.widths)) end += size * sizeof(float);
  file.require_size(end, "the weights of " + format_widths(weights.widths));
  file.load();
  require_checksum(file);
  for (const std::size_t size : parameter_sizes(weights.widths)) {
    std::vector<float>& values = weights.parameters.emplace_back(size);
    for (float& value : values) {
      value = std::bit_cast<float>(file.little_endian(offset));
      offset += sizeof(float);
    }
  }
  return weights;
}

}  // namespace weir
