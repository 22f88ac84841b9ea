#include "trainer/data/idx.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "allocator/base/error.hpp"
#include "tools/program/numbers.hpp"
#include "trainer/data/input_file.hpp"

namespace weir {
namespace {

/// Bytes 0 and 1 are zero, byte 2 is the type (8: unsigned bytes), byte 3 the number of dimensions.
constexpr std::uint32_t kLabelsMagic = 0x00000801;
constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::size_t kLabelsHeader = 8;
constexpr std::size_t kImagesHeader = 16;

std::string range(std::uint32_t most) { return "from 1 to " + std::to_string(most); }

/// Finds the files of a data set in its directory.
class Directory {
 public:
  Directory(std::string option, std::string path)
      : option_(std::move(option)), path_(std::move(path)) {
    std::error_code error;
    const bool found = std::filesystem::is_directory(path_, error);
    if (!found) {
      fail(error ? error.message() : std::make_error_code(std::errc::not_a_directory).message());
    }
    const std::filesystem::directory_iterator readable(path_, error);
    if (error) fail(error.message());
  }

  /// Opens `train-images-idx3-ubyte`, or the name with a dot that some archives have.
  [[nodiscard]] InputFile open(const std::string& stem, const std::string& kind) const {
    const std::array names{stem + "-" + kind, stem + "." + kind};
    for (const std::string& name : names) {
      if (is_there(path_to(name))) return {option_, path_to(name)};
    }
    for (const std::string& name : names) {
      const std::string packed = path_to(name + ".gz");
      if (!is_there(packed)) continue;
      throw UsageError(option_ + ": " + packed + ": expected to be unpacked (gunzip it first)");
    }
    throw UsageError(option_ + ": " + path_to(names.front()) +
                     ": no such file (nor with a '.' before " + kind + ")");
  }

 private:
  /// Also true if it cannot be examined: opening it reports why.
  [[nodiscard]] static bool is_there(const std::string& path) {
    std::error_code error;
    return std::filesystem::status(path, error).type() != std::filesystem::file_type::not_found;
  }
  [[nodiscard]] std::string path_to(const std::string& name) const {
    return (std::filesystem::path(path_) / name).string();
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw UsageError(option_ + "='" + path_ + "' is not allowed: a directory that can be read (" +
                     why + ")");
  }

  const std::string option_;
  const std::string path_;
};

void require_magic(const InputFile& file, std::uint32_t magic, std::string_view what) {
  const std::uint32_t found = file.big_endian(0);
  if (found == magic) return;
  file.refuse_at(0, "magic " + format_hex(magic, 8) + " (" + std::string(what) + ")",
                 format_hex(found, 8));
}

std::uint32_t read_count(const InputFile& file) {
  const std::uint32_t count = file.big_endian(4);
  if (count == 0 || count > kMostImages) {
    file.refuse_at(4, "a number of items " + range(kMostImages), std::to_string(count));
  }
  return count;
}

void read_images(InputFile& file, LabelledImages& images) {
  file.require_at_least(kImagesHeader, "the header of an images file");
  require_magic(file, kImagesMagic, "images: unsigned bytes in 3 dimensions");
  images.count = read_count(file);
  images.rows = file.big_endian(8);
  images.columns = file.big_endian(12);
  // The product of two 32-bit numbers cannot overflow.
  if (const std::uint64_t pixels = std::uint64_t{images.rows} * images.columns;
      pixels == 0 || pixels > kMostPixels) {
    file.refuse_at(8, "rows x columns " + range(kMostPixels),
                   std::to_string(images.rows) + " x " + std::to_string(images.columns));
  }
  const std::string what = std::to_string(images.count) + " images of " +
                           std::to_string(images.rows) + " x " + std::to_string(images.columns);
  file.require_size(kImagesHeader + images.count * images.pixels_per_image(), what);
  images.pixels = file.take_from(kImagesHeader);
  images.images_file = file.path();
}

void read_labels(InputFile& file, LabelledImages& images) {
  file.require_at_least(kLabelsHeader, "the header of a labels file");
  require_magic(file, kLabelsMagic, "labels: unsigned bytes in 1 dimension");
  const std::uint32_t count = read_count(file);
  if (count != images.count) {
    file.refuse_at(
        4,
        std::to_string(images.count) + " labels, as many as " + images.images_file + " has images",
        std::to_string(count));
  }
  file.require_size(kLabelsHeader + count, std::to_string(count) + " labels");
  images.labels = file.take_from(kLabelsHeader);
  images.labels_file = file.path();
}

LabelledImages read_pair(const Directory& directory, const std::string& prefix) {
  LabelledImages images;
  InputFile pixels = directory.open(prefix + "-images", "idx3-ubyte");
  read_images(pixels, images);
  InputFile labels = directory.open(prefix + "-labels", "idx1-ubyte");
  read_labels(labels, images);
  return images;
}

void require_same_size(const std::string& option, const LabelledImages& train,
                       const LabelledImages& test) {
  const auto text = [](const LabelledImages& images) {
    return std::to_string(images.rows) + " x " + std::to_string(images.columns);
  };
  if (train.rows == test.rows && train.columns == test.columns) return;
  refuse_contents(option, test.images_file, 8,
                  "images of " + text(train) + ", as in " + train.images_file, text(test));
}

}  // namespace

void require_labels_below(const std::string& option, const LabelledImages& images,
                          std::size_t classes, const std::string& source) {
  const auto bad = std::ranges::find_if(images.labels,
                                        [classes](std::uint8_t label) { return label >= classes; });
  if (bad == images.labels.end()) return;
  refuse_contents(option, images.labels_file,
                  kLabelsHeader + static_cast<std::size_t>(bad - images.labels.begin()),
                  "a label from 0 to " + std::to_string(classes - 1) + " (" + source + ")",
                  std::to_string(*bad));
}

DataSet read_data_set(const std::string& option, const std::string& directory) {
  const Directory files(option, directory);
  DataSet data{.train = read_pair(files, "train"), .test = read_pair(files, "t10k"), .classes = 0};
  require_same_size(option, data.train, data.test);
  data.classes = std::size_t{*std::ranges::max_element(data.train.labels)} + 1;
  if (data.classes < 2) {
    refuse_contents(option, data.train.labels_file, kLabelsHeader, "labels of at least 2 classes",
                    "nothing but 0");
  }
  require_labels_below(option, data.test, data.classes, "the classes of " + data.train.labels_file);
  return data;
}

LabelledImages read_test_images(const std::string& option, const std::string& directory) {
  return read_pair(Directory(option, directory), "t10k");
}

}  // namespace weir
