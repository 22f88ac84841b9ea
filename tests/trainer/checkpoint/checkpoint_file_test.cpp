// The file of a checkpoint: the bytes that docs/data.md describes, and that every damage is
// found and said where it is.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>

#include "allocator/base/error.hpp"
#include "checkpoint_samples.hpp"
#include "support/message_of.hpp"
#include "trainer/data/input_file.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

std::uint32_t crc_of(std::string_view bytes) {
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(bytes)));
  return checksum.value();
}

std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string bytes_of_sample(const CheckpointHeader& header) {
  const TemporaryDirectory directory;
  write_sample(directory.file("c"), header);
  EXPECT_EQ(directory.entries(), 1U);
  return read_file(directory.file("c"));
}

/// The message with which a file of these bytes is refused.
std::string refusal_of_checkpoint(const std::string& bytes) {
  static const TemporaryDirectory kDirectory;     // one for all: making them takes longer
  std::filesystem::remove(kDirectory.file("c"));  // some disks write back what is cut
  write_file(kDirectory.file("c"), bytes);
  std::string message = message_of<UsageError>([&] { (void)read_all(kDirectory.file("c")); });
  const std::string begin = "--resume: " + kDirectory.file("c") + ": ";
  EXPECT_TRUE(message.starts_with(begin)) << message;
  EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
  return message.substr(std::min(begin.size(), message.size()));
}

void expect_checkpoint_refused(const std::string& bytes, const std::vector<std::string>& parts) {
  expect_parts(refusal_of_checkpoint(bytes), parts);
}

constexpr std::string_view kSmallLines =
    "setting widths=2 -> 3\nsetting precision=bf16\nposition batch=7\nposition scale=65536\n"
    "tensor w0=2x3\ntensor b0=3\n";

TEST(CheckpointFile, IsTheBytesOfTheDocumentation) {
  const std::string begin = std::string(kCheckpointMagic) + little_endian(1) +
                            little_endian(kSmallLines.size()) + std::string(kSmallLines);
  std::string words;
  std::string file = begin + little_endian(crc_of(begin));
  for (const auto& section : sample_of(small_header())) {
    for (const float element : section)
      words += little_endian(std::bit_cast<std::uint32_t>(element));
    file += words.substr(words.size() - section.size() * 4);
    file += little_endian(crc_of(begin + words));
  }
  EXPECT_EQ(bytes_of_sample(small_header()), file);
}

TEST(CheckpointFile, ItsChecksumIsThatOfGzip) {
  EXPECT_EQ(crc_of("123456789"), 0xCBF43926U);
  EXPECT_EQ(crc_of(""), 0U);
}

TEST(CheckpointFile, ReadBackIsTheSameHeaderAndTheSameBits) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("c");
  const CheckpointHeader header{
      .settings = {}, .position = {{"empty", ""}, {"file", "a = b"}}, .sections = {{"x", {5}}}};
  const std::vector<float> values{-0.0F, std::numeric_limits<float>::infinity(),
                                  std::bit_cast<float>(0x7FA00001U),
                                  std::numeric_limits<float>::denorm_min(), 1};
  OutputFile file("--checkpoint", path);
  write_checkpoint(file, header, [&](std::size_t, std::size_t, std::span<float> out) {
    std::memcpy(out.data(), values.data(), out.size_bytes());
  });
  const CheckpointReader reader("--resume", path);
  EXPECT_EQ(reader.header().settings, header.settings);
  EXPECT_EQ(reader.header().position, header.position);
  EXPECT_EQ(reader.header().sections, header.sections);
  const auto read = read_all(reader);
  ASSERT_EQ(read.size(), 1U);
  ASSERT_EQ(read[0].size(), values.size());
  EXPECT_EQ(std::memcmp(read[0].data(), values.data(), values.size() * sizeof(float)), 0);
}

TEST(CheckpointFile, EveryChangedByteIsRefusedWhereItIs) {
  const std::string whole = bytes_of_sample(small_header());
  const std::size_t header_end = kLinesOffset + kSmallLines.size();
  const std::size_t w0_end = header_end + 4 + 6 * 4;
  const std::size_t b0_end = w0_end + 4 + 3 * 4;
  ASSERT_EQ(whole.size(), b0_end + 4);
  const auto place_of = [&](std::size_t i) -> std::vector<std::string> {
    if (i < 8) return {"at offset 0: ", "a checkpoint"};
    if (i < 12) return {"at offset 8: ", "version 1"};
    if (i < 16) return {"at offset "};  // another length puts the checksum anywhere
    if (i < header_end + 4) return {"at offset " + std::to_string(header_end), "of the header"};
    if (i < w0_end + 4) return {"at offset " + std::to_string(w0_end), "tensor w0"};
    return {"at offset " + std::to_string(b0_end), "tensor b0"};
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned change : {0x01U, 0x80U, 0xFFU}) {
      SCOPED_TRACE(i);
      std::string damaged = whole;
      damaged[i] = static_cast<char>(static_cast<std::uint8_t>(damaged[i]) ^ change);
      expect_checkpoint_refused(damaged, place_of(i));
    }
  }
}

TEST(CheckpointFile, EveryCutIsRefusedAtTheEnd) {
  const std::string whole = bytes_of_sample(small_header());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_checkpoint_refused(whole.substr(0, size), {"at offset " + std::to_string(size) + ": ",
                                                      "found the end of the file"});
  }
  expect_checkpoint_refused(whole.substr(0, whole.size() - 1),
                            {std::to_string(whole.size()) + " bytes (a checkpoint of 2 tensors)"});
}

TEST(CheckpointFile, TrailingBytesAreRefused) {
  const std::string whole = bytes_of_sample(small_header());
  expect_checkpoint_refused(whole + "xy",
                            {"at offset " + std::to_string(whole.size()), "2 more bytes"});
}

TEST(CheckpointFile, AnotherFileIsRefusedAtItsBegin) {
  expect_checkpoint_refused("WEIRMLP\n and so on", {"at offset 0: ", "WEIRCKP", "'WEIRMLP\\x0a'"});
  expect_checkpoint_refused("x", {"at offset 0: ", "found 'x'"});
}

TEST(CheckpointFile, AHeaderThatIsTooLongIsRefusedBeforeItIsRead) {
  const std::string begin = std::string(kCheckpointMagic) + little_endian(1);
  expect_checkpoint_refused(begin + little_endian(kMostLines + 1),
                            {"at offset 12: ", "1048576 bytes", "found 1048577"});
}

/// A file whose header has these lines and the right checksum.
std::string with_lines(const std::string& lines) {
  const std::string begin = std::string(kCheckpointMagic) + little_endian(1) +
                            little_endian(static_cast<std::uint32_t>(lines.size())) + lines;
  return begin + little_endian(crc_of(begin));
}

TEST(CheckpointFile, AWrongLineIsRefusedWhereItBegins) {
  const std::string good = "setting a=1\n";
  const auto expect = [&](const std::string& line, const std::string& part) {
    SCOPED_TRACE(line);
    expect_checkpoint_refused(with_lines(good + line), {"at offset 28: ", part});
  };
  expect("settings\n", "expected a line such as setting NAME=VALUE, found 'settings'");
  expect("a=b c\n", "expected a line such as setting NAME=VALUE");
  expect("tensors w=3\n", "expected settings, then positions, then tensors");
  expect("setting =3\n", "expected a name of at most 128 letters");
  expect("setting a b=3\n", "expected a name of at most 128 letters");
  expect("setting " + std::string(129, 'n') + "=3\n", "expected a name of at most 128 letters");
  expect("setting a=2\n", "expected no name twice");
  expect("position b=\x01\n", "expected a value without control characters");
  for (const char* extents : {"", "0", "3x", "x3", "03", "3x-1", "2x0", "1x1x1x1x1", "3 ",
                              "1152921504606846977", "2x1152921504606846976"}) {
    expect("tensor w=" + std::string(extents) + "\n", "expected 1 to 4 extents");
  }
  expect_checkpoint_refused(with_lines("position a=1\nsetting a=1\n"), {"at offset 29: "});
  expect_checkpoint_refused(with_lines("setting a=1"), {"at offset 27: ", "expected a line feed"});
}

TEST(CheckpointFile, SizesThatNoFileHasDoNotOverflow) {
  std::string lines;
  for (int i = 0; i < 8; ++i) lines += "tensor w" + std::to_string(i) + "=1152921504606846976\n";
  expect_checkpoint_refused(with_lines(lines), {"a checkpoint of 8 tensors", "end of the file"});
}

TEST(CheckpointFile, WhatCouldNotBeReadIsNotWritten) {
  const auto refused = [](const CheckpointHeader& header) {
    const std::string message = message_of<UsageError>([&] { (void)encode_header(header); });
    EXPECT_TRUE(message.starts_with("a checkpoint's header: expected ")) << message;
    EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
  };
  refused({.settings = {{"a b", "1"}}, .position = {}, .sections = {}});
  refused({.settings = {{"a", "1\n2"}}, .position = {}, .sections = {}});
  refused({.settings = {{"a", "1"}, {"a", "2"}}, .position = {}, .sections = {}});
  refused({.settings = {}, .position = {}, .sections = {{"w", {}}}});
  refused({.settings = {}, .position = {}, .sections = {{"w", {3, 0}}}});
  refused({.settings = {{"a", std::string(kMostLines, 'x')}}, .position = {}, .sections = {}});
}

TEST(CheckpointFile, ALongSectionIsCheckedChunkByChunk) {
  const CheckpointHeader header{
      .settings = {}, .position = {}, .sections = {{"w", {2 * kChunkElements}}, {"b", {3}}}};
  const std::string whole = bytes_of_sample(header);
  const std::size_t first = encode_header(header).size() + kChecksumBytes;
  const std::size_t chunk = kChunkElements * sizeof(float) + kChecksumBytes;
  {
    const TemporaryDirectory directory;
    write_file(directory.file("c"), whole);
    EXPECT_EQ(read_all(directory.file("c")), sample_of(header));
  }
  std::string damaged = whole;
  damaged[first + chunk + 99] ^= 1;
  expect_checkpoint_refused(
      damaged, {"at offset " + std::to_string(first + 2 * chunk - 4), "tensor w up to there"});
  // Each is whole, and not where it was written.
  const std::string exchanged = whole.substr(0, first) + whole.substr(first + chunk, chunk) +
                                whole.substr(first, chunk) + whole.substr(first + 2 * chunk);
  expect_checkpoint_refused(exchanged, {"at offset " + std::to_string(first + chunk - 4)});
}

std::string difference(const Figures& settings, const std::vector<Section>& sections) {
  const TemporaryDirectory directory;
  write_sample(directory.file("c"), small_header());
  const CheckpointReader reader("--resume", directory.file("c"));
  const std::string message = message_of<UsageError>([&] { reader.require(settings, sections); });
  return message.substr(message.find("at offset"));
}

TEST(CheckpointFile, TheFirstDifferenceFromTheRunIsNamed) {
  const CheckpointHeader header = small_header();
  EXPECT_EQ(difference({{"widths", "2 -> 4"}, {"precision", "fp32"}}, header.sections),
            "at offset 16: expected setting widths=2 -> 4 as in this run, found setting "
            "widths=2 -> 3");
  EXPECT_EQ(difference({{"widths", "2 -> 3"}, {"precision", "fp32"}}, header.sections),
            "at offset 38: expected setting precision=fp32 as in this run, found setting "
            "precision=bf16");
  EXPECT_EQ(difference({header.settings[0]}, header.sections),
            "at offset 38: expected no further setting as in this run, found setting "
            "precision=bf16");
  Figures more = header.settings;
  more.push_back({"seed", "1"});
  EXPECT_EQ(difference(more, header.sections),
            "at offset 61: expected setting seed=1 as in this run, found no further setting");
  EXPECT_EQ(difference(header.settings, {{"w0", {3, 2}}, {"b0", {3}}}),
            "at offset 99: expected tensor w0=3x2 as in this run, found tensor w0=2x3");
  EXPECT_EQ(difference(header.settings, {{"w0", {2, 3}}}),
            "at offset 113: expected no further tensor as in this run, found tensor b0=3");
}

TEST(CheckpointFile, ItsPositionIsAskedByName) {
  const TemporaryDirectory directory;
  CheckpointHeader header = small_header();
  header.position.push_back({"order", "ab"});
  write_sample(directory.file("c"), header);
  const CheckpointReader reader("--resume", directory.file("c"));
  EXPECT_EQ(reader.number("batch"), 7U);
  EXPECT_EQ(reader.text("order"), "ab");
  EXPECT_NE(message_of<UsageError>([&] { (void)reader.number("order"); }).find("found 'ab'"),
            std::string::npos);
  EXPECT_NE(message_of<UsageError>([&] {
              (void)reader.text("epoch");
            }).find("expected a line position epoch=..., found none"),
            std::string::npos);
}

TEST(CheckpointFile, WhatTheCallersReadThrowsLeavesTheOldFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("c");
  write_sample(path, small_header());
  OutputFile file("--checkpoint", path, OutputFile::Beside::kOneName);
  EXPECT_THROW(write_checkpoint(file, small_header(),
                                [](std::size_t, std::size_t, std::span<float>) {
                                  throw std::runtime_error("no tensor");
                                }),
               std::runtime_error);
  EXPECT_EQ(directory.entries(), 1U);
  EXPECT_EQ(read_all(path), sample_of(small_header()));
}

}  // namespace
}  // namespace weir::testing
