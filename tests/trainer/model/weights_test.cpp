// The file of weights: the bytes that docs/data.md describes, and that every damage is detected.

#include "trainer/model/weights.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/data/input_file.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

SavedWeights small_weights() {
  return {.widths = {2, 3, 1},
          .parameters = {{1, -2, 3, -4, 5, -6}, {0.5F, 0, -0.0F}, {7, 8, 9}, {10}}};
}

std::string refusal(const std::string& contents) {
  const TemporaryDirectory directory;
  write_file(directory.file("w"), contents);
  std::string message =
      message_of<UsageError>([&] { (void)read_weights("--weights", directory.file("w")); });
  EXPECT_TRUE(message.starts_with("--weights: " + directory.file("w") + ": ")) << message;
  EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
  return message;
}

void expect_refused(const std::string& contents, const std::vector<std::string>& parts) {
  expect_parts(refusal(contents), parts);
}

TEST(Weights, ReadBackAreTheSameBits) {
  const TemporaryDirectory directory;
  SavedWeights weights = small_weights();
  weights.parameters[2][1] = std::numeric_limits<float>::infinity();
  weights.parameters[2][2] = std::numeric_limits<float>::denorm_min();
  write_file(directory.file("w"), encode_weights(weights));
  const SavedWeights read = read_weights("--weights", directory.file("w"));
  EXPECT_EQ(read.widths, weights.widths);
  EXPECT_EQ(read.parameters, weights.parameters);
  EXPECT_TRUE(std::signbit(read.parameters[1][2])) << "minus zero, which equals zero";
}

TEST(Weights, AreTheBytesOfTheDocumentation) {
  const std::string bytes = encode_weights({.widths = {1, 2}, .parameters = {{1, -2}, {0, 0.5F}}});
  EXPECT_EQ(bytes.substr(0, bytes.size() - 4), std::string("WEIRMLP\n"
                                                           "\1\0\0\0"
                                                           "\2\0\0\0"
                                                           "\1\0\0\0"
                                                           "\2\0\0\0"
                                                           "\0\0\x80\x3f"
                                                           "\0\0\0\xc0"
                                                           "\0\0\0\0"
                                                           "\0\0\0\x3f",
                                                           40));
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(bytes).first(bytes.size() - 4)));
  std::uint32_t last = 0;
  std::memcpy(&last, bytes.data() + bytes.size() - 4, sizeof last);
  EXPECT_EQ(last, checksum.value());
}

TEST(Weights, WhatIsNoWeightsFileIsRefused) {
  expect_refused("{\"weir\": 1} and so on",
                 {"at offset 0", "expected WEIRMLP", "found '{\"weir\":'"});
  expect_refused("x", {"at offset 0", "expected WEIRMLP", "found 'x'"});
}

TEST(Weights, EveryTruncationIsRefused) {
  const std::string whole = encode_weights(small_weights());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_refused(whole.substr(0, size),
                   {"at offset " + std::to_string(size), " bytes (", "found the end of the file"});
  }
  expect_refused(whole.substr(0, 40), {std::to_string(whole.size()) + " bytes", "2 -> 3 -> 1"});
}

TEST(Weights, TrailingBytesAreRefused) {
  const std::string whole = encode_weights(small_weights());
  expect_refused(whole + "xy", {"at offset " + std::to_string(whole.size()), "2 more bytes"});
}

TEST(Weights, EveryFlippedBitIsRefused) {
  const std::string whole = encode_weights(small_weights());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(static_cast<std::uint8_t>(damaged[i]) ^ (1U << bit));
      (void)refusal(damaged);
    }
  }
  std::string damaged = whole;
  damaged[30] = 'x';
  expect_refused(damaged, {"at offset " + std::to_string(whole.size() - 4), "checksum", "damaged"});
}

TEST(Weights, HeadersOutOfBoundsAreRefusedBeforeAnythingIsMultiplied) {
  const std::string whole = encode_weights(small_weights());
  const auto with = [&](std::size_t offset, const std::string& bytes) {
    return std::string(whole).replace(offset, bytes.size(), bytes);
  };
  expect_refused(with(8, "\2"), {"at offset 8", "expected version 1", "found 2"});
  expect_refused(with(12, "\1"), {"at offset 12", "from 2 to 64", "found 1"});
  expect_refused(with(12, "\xff\xff\xff\xff"), {"at offset 12", "found 4294967295"});
  expect_refused(with(16, std::string(1, '\0')), {"at offset 16", "from 1 to 16777216", "found 0"});
  expect_refused(with(20, "\xff\xff\xff\xff"), {"at offset 20", "found 4294967295"});
}

TEST(Weights, OfAnotherShapeThanTheirWidthsAreNotEncoded) {
  SavedWeights weights = small_weights();
  weights.parameters[0].pop_back();
  EXPECT_THROW((void)encode_weights(weights), UsageError);
  weights = small_weights();
  weights.parameters.pop_back();
  EXPECT_THROW((void)encode_weights(weights), UsageError);
}

TEST(Weights, AFileThatIsNotThereIsNamed) {
  const TemporaryDirectory directory;
  for (const std::string& path : {directory.file("missing"), directory.file("")}) {
    const std::string message =
        message_of<UsageError>([&] { (void)read_weights("--weights", path); });
    EXPECT_TRUE(message.starts_with("--weights: " + path + ": cannot be read")) << message;
  }
}

}  // namespace
}  // namespace weir::testing
