#include "digits.hpp"

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "kernels/parts/philox.hpp"

namespace weir::testing {
namespace {

constexpr std::size_t kGlyphRows = 7;
constexpr std::size_t kGlyphColumns = 6;
using Glyph = std::array<std::string_view, kGlyphRows>;
// clang-format off
constexpr std::array<Glyph, kDigits> kGlyphs{{
    {".####.", "##..##", "##..##", "##..##", "##..##", "##..##", ".####."},
    {"..##..", ".###..", "####..", "..##..", "..##..", "..##..", "######"},
    {".####.", "##..##", "....##", "...##.", "..##..", ".##...", "######"},
    {"#####.", "....##", "....##", "..###.", "....##", "....##", "#####."},
    {"...##.", "..###.", ".#.##.", "#..##.", "######", "...##.", "...##."},
    {"######", "##....", "##....", "#####.", "....##", "....##", "#####."},
    {"..###.", ".##...", "##....", "#####.", "##..##", "##..##", ".####."},
    {"######", "....##", "...##.", "...##.", "..##..", "..##..", "..##.."},
    {".####.", "##..##", "##..##", ".####.", "##..##", "##..##", ".####."},
    {".####.", "##..##", "##..##", ".#####", "....##", "...##.", ".###.."},
}};
// clang-format on

/// A random word for each use in each image; those of one image start at its number.
class RandomWords {
 public:
  RandomWords(std::uint64_t seed, std::size_t image)
      : key_{static_cast<std::uint32_t>(seed), 1}, image_(static_cast<std::uint32_t>(image)) {}
  [[nodiscard]] std::uint32_t below(std::uint32_t limit) {
    return philox4x32({.x = next_++, .y = image_}, key_).x % limit;
  }

 private:
  PhiloxKey key_;
  std::uint32_t image_;
  std::uint32_t next_ = 0;
};

void draw_digit(std::size_t digit, RandomWords words, std::uint8_t* pixels) {
  const std::size_t top = 1 + words.below(2);
  const std::size_t left = 1 + words.below(3);
  const std::uint32_t bright = 150 + words.below(70);
  for (std::size_t row = 0; row < kDigitSide; ++row) {
    for (std::size_t column = 0; column < kDigitSide; ++column) {
      const bool inside =
          row >= top && row - top < kGlyphRows && column >= left && column - left < kGlyphColumns;
      const bool ink = inside && kGlyphs.at(digit).at(row - top).at(column - left) == '#';
      *pixels++ = static_cast<std::uint8_t>((ink ? bright : 0U) + words.below(36));
    }
  }
}

void append(std::string& text, std::uint32_t value) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    text.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> shift)));
  }
}

}  // namespace

LabelledImages draw_digits(std::size_t count, std::uint64_t seed) {
  LabelledImages images{.count = count, .rows = kDigitSide, .columns = kDigitSide};
  images.pixels.resize(count * images.pixels_per_image());
  for (std::size_t i = 0; i < count; ++i) {
    images.labels.push_back(static_cast<std::uint8_t>(i % kDigits));
    draw_digit(i % kDigits, RandomWords(seed, i),
               images.pixels.data() + i * images.pixels_per_image());
  }
  return images;
}

std::shared_ptr<const DataSet> digit_set() {
  static const auto kSet = std::make_shared<const DataSet>(
      DataSet{.train = draw_digits(603, 1), .test = draw_digits(201, 2), .classes = kDigits});
  return kSet;
}

std::string idx_images(const LabelledImages& images) {
  std::string text;
  append(text, 0x00000803);
  for (const std::size_t size : {images.count, images.rows, images.columns}) {
    append(text, static_cast<std::uint32_t>(size));
  }
  return text + std::string(images.pixels.begin(), images.pixels.end());
}

std::string idx_labels(const LabelledImages& images) {
  std::string text;
  append(text, 0x00000801);
  append(text, static_cast<std::uint32_t>(images.count));
  return text + std::string(images.labels.begin(), images.labels.end());
}

void write_data_set(const std::filesystem::path& directory, const DataSet& set) {
  std::filesystem::create_directories(directory);
  for (const auto& [name, bytes] : {std::pair{kTrainImages, idx_images(set.train)},
                                    {kTrainLabels, idx_labels(set.train)},
                                    {kTestImages, idx_images(set.test)},
                                    {kTestLabels, idx_labels(set.test)}}) {
    std::ofstream file(directory / name, std::ios::binary);
    file.exceptions(std::ios::badbit | std::ios::failbit);
    file << bytes << std::flush;
  }
}

}  // namespace weir::testing
