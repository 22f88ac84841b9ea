#pragma once

// A small generated data set of digits, in MNIST's file format.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "temporary_directory.hpp"
#include "trainer/data/idx.hpp"

namespace weir::testing {

inline constexpr std::size_t kDigitSide = 10;  ///< pixels
inline constexpr std::size_t kDigits = 10;     ///< classes

/// Digits 0 to 9 in turn, each at one of nine places, with its own brightness, in noise.
[[nodiscard]] LabelledImages draw_digits(std::size_t count, std::uint64_t seed);
/// 603 for training and 201 for tests: neither is a whole number of batches.
[[nodiscard]] std::shared_ptr<const DataSet> digit_set();

/// The bytes of the two files.
[[nodiscard]] std::string idx_images(const LabelledImages& images);
[[nodiscard]] std::string idx_labels(const LabelledImages& images);

/// Writes the four files of a data set. Throws if it cannot.
void write_data_set(const std::filesystem::path& directory, const DataSet& set);

/// The files of a data set in a temporary directory.
class DigitFiles {
 public:
  DigitFiles() : DigitFiles(*digit_set()) {}
  explicit DigitFiles(const DataSet& set) { write_data_set(directory(), set); }

  [[nodiscard]] std::string directory() const { return directory_.file(""); }
  [[nodiscard]] std::string path(std::string_view name) const { return directory_.file(name); }

 private:
  TemporaryDirectory directory_;
};

inline constexpr const char* kTrainImages = "train-images-idx3-ubyte";
inline constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
inline constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
inline constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

}  // namespace weir::testing
