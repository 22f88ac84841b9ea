#include "trainer/model/weights.hpp"

#include <algorithm>
#include <bit>

#include "allocator/base/error.hpp"
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

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return checksum.value();
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

}  // namespace

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
  append_little_endian(text, kFormatVersion);
  append_little_endian(text, static_cast<std::uint32_t>(weights.widths.size()));
  for (const std::size_t width : weights.widths)
    append_little_endian(text, static_cast<std::uint32_t>(width));
  for (const std::vector<float>& values : weights.parameters) {
    for (const float value : values)
      append_little_endian(text, std::bit_cast<std::uint32_t>(value));
  }
  append_little_endian(text, checksum_of(std::as_bytes(std::span(text))));
  return text;
}

SavedWeights read_weights(const std::string& option, const std::string& path) {
  InputFile file(option, path);
  file.require_magic(kMagic, "a weights file");
  file.require_at_least(kWidthsOffset, "the header of a weights file");
  SavedWeights weights{.widths = read_widths(file), .parameters = {}};
  std::size_t offset = kWidthsOffset + 4 * weights.widths.size();
  std::size_t end = offset + kChecksumSize;
  for (const std::size_t size : parameter_sizes(weights.widths)) end += size * sizeof(float);
  file.require_size(end, "the weights of " + format_widths(weights.widths));
  file.load();
  const auto contents = std::span(file.bytes()).first(file.size() - kChecksumSize);
  file.require_checksum(contents.size(), checksum_of(std::as_bytes(contents)), "what is before it");
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
