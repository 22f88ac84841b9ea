#pragma once

// Data sets in the IDX format of MNIST (yann.lecun.com/exdb/mnist), read whole into host memory.
// docs/data.md describes the files. Everything in a file is checked; a fault throws a UsageError of
// one line: the option, the file, the offset, what was expected and what was found.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// Images and their classes.
struct LabelledImages {
  std::size_t count = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint8_t> pixels{};  ///< [count × rows × columns], 0 to 255
  std::vector<std::uint8_t> labels{};  ///< [count]
  std::string images_file{};           ///< source paths, for messages
  std::string labels_file{};

  [[nodiscard]] std::size_t pixels_per_image() const noexcept { return rows * columns; }
};

struct DataSet {
  LabelledImages train;
  LabelledImages test;
  std::size_t classes = 0;  ///< one more than the largest training label
};

/// Correct rows are counted in float, which is exact up to here.
inline constexpr std::uint32_t kMostImages = 1U << 24U;
/// More than any picture has, and far below where products of sizes overflow.
inline constexpr std::uint32_t kMostPixels = 1U << 24U;

/// Reads the four files of `directory`. Messages begin with `option`.
[[nodiscard]] DataSet read_data_set(const std::string& option, const std::string& directory);
/// Reads only the two test files.
[[nodiscard]] LabelledImages read_test_images(const std::string& option,
                                              const std::string& directory);

/// Refuses the first label of `images` that is not below `classes`; `source` names the origin of
/// `classes`.
void require_labels_below(const std::string& option, const LabelledImages& images,
                          std::size_t classes, const std::string& source);

}  // namespace weir
