// make_digits DIR: writes the tests' data set of digits, for trying `weir-train run --data DIR`.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include "digits.hpp"

namespace {

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::badbit | std::ios::failbit);
  file << bytes << std::flush;
}

void write_digits(const std::filesystem::path& directory) {
  using namespace weir::testing;
  std::filesystem::create_directories(directory);
  const auto set = digit_set();
  write(directory / kTrainImages, idx_images(set->train));
  write(directory / kTrainLabels, idx_labels(set->train));
  write(directory / kTestImages, idx_images(set->test));
  write(directory / kTestLabels, idx_labels(set->test));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_digits DIR\n", stderr);
    return 2;
  }
  try {
    write_digits(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_digits: '%s' cannot be written: %s\n", argv[1], error.what());
    return 1;
  }
}
