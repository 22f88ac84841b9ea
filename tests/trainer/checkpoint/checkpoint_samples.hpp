#pragma once

// Small checkpoints, and all of a checkpoint read at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_reader.hpp"
#include "trainer/checkpoint/checkpointer.hpp"

namespace weir::testing {

[[nodiscard]] inline CheckpointHeader small_header() {
  return {.settings = {{"widths", "2 -> 3"}, {"precision", "bf16"}},
          .position = {{"batch", "7"}, {"scale", "65536"}},
          .sections = {{"w0", {2, 3}}, {"b0", {3}}}};
}

/// What write_sample writes: element i of section s is 100 s + i.
[[nodiscard]] inline std::vector<std::vector<float>> sample_of(const CheckpointHeader& header) {
  std::vector<std::vector<float>> sample;
  for (const Section& section : header.sections) {
    const auto first = static_cast<float>(100 * sample.size());
    std::vector<float>& elements = sample.emplace_back(elements_of(section));
    std::iota(elements.begin(), elements.end(), first);
  }
  return sample;
}

inline void write_sample(const std::string& path, const CheckpointHeader& header) {
  OutputFile file("--checkpoint", path, OutputFile::Beside::kOneName);
  const auto sample = sample_of(header);
  write_checkpoint(file, header, [&](std::size_t section, std::size_t first, std::span<float> out) {
    const std::span<const float> all = sample[section];
    std::ranges::copy(all.subspan(first, out.size()), out.begin());
  });
}

/// Reads and checks the whole file.
[[nodiscard]] inline std::vector<std::vector<float>> read_all(const CheckpointReader& reader) {
  std::vector<std::vector<float>> all(reader.header().sections.size());
  reader.read([&](std::size_t section, std::size_t first, std::span<const float> elements) {
    EXPECT_EQ(all[section].size(), first);
    all[section].insert(all[section].end(), elements.begin(), elements.end());
  });
  return all;
}
[[nodiscard]] inline std::vector<std::vector<float>> read_all(const std::string& path) {
  return read_all(CheckpointReader("--resume", path));
}

}  // namespace weir::testing
