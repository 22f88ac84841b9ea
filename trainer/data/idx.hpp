#pragma once

// Data sets in the IDX format of MNIST (yann.lecun.com/exdb/mnist), read whole into host memory.
// docs/data.md describes the files. What a file says is checked before it is believed; whatever is
// wrong is a UsageError of one line: the option, the file, the offset, what was expected and what
// was found.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// Images and the class of each.
struct LabelledImages {
  std::size_t count = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint8_t> pixels{};  ///< [count × rows × columns], 0 to 255
  std::vector<std::uint8_t> labels{};  ///< [count]
  std::string images_file{};           ///< the paths they were read from, for messages
  std::string labels_file{};

  [[nodiscard]] std::size_t pixels_per_image() const noexcept { return rows * columns; }
};

struct DataSet {
  LabelledImages train;
  LabelledImages test;
  std::size_t classes = 0;  ///< the largest label of the training files, and one
};

/// Counts up to here are exact in float, which the correct rows are counted in.
inline constexpr std::uint32_t kMostImages = 1U << 24U;
/// Far past any picture, and far from where products of sizes overflow.
inline constexpr std::uint32_t kMostPixels = 1U << 24U;

/// The four files of `directory`. `option` is what the messages begin with.
[[nodiscard]] DataSet read_data_set(const std::string& option, const std::string& directory);
/// Its two test files alone.
[[nodiscard]] LabelledImages read_test_images(const std::string& option,
                                              const std::string& directory);

/// Refuses the first label of `images` that is not below `classes`; `source` says whose they are.
void require_labels_below(const std::string& option, const LabelledImages& images,
                          std::size_t classes, const std::string& source);

}  // namespace weir
