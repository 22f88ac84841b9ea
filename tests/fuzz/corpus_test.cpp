// What the fuzzer has found, read by every build; and that the corpus has every format in it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "read_bytes.hpp"

namespace weir::testing {
namespace {

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ReplayCorpus, EveryFileIsReadOrRefusedInOneLine) {
  std::map<std::string, int> read;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_FUZZ_CORPUS)) {
    SCOPED_TRACE(entry.path().string());
    const std::string name = entry.path().filename().string();
    ++files;
    bool was_read = false;
    EXPECT_NO_THROW(was_read = read_bytes(contents_of(entry.path())));
    if (was_read) ++read[name.substr(0, name.find('-'))];
  }
  EXPECT_GE(files, 20U);
  // Files are named by their format, then by what is in them.
  for (const char* format : {"lifetimes", "rmm", "log", "gzip"})
    EXPECT_GE(read[format], 1) << format;
}

TEST(ReplayCorpus, EveryPrefixOfEveryFileIsReadOrRefusedInOneLine) {
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_FUZZ_CORPUS)) {
    SCOPED_TRACE(entry.path().string());
    const std::string bytes = contents_of(entry.path());
    const std::size_t step = std::max<std::size_t>(1, bytes.size() / 200);
    for (std::size_t size = 0; size < bytes.size(); size += step) {
      EXPECT_NO_THROW((void)read_bytes(std::string_view(bytes).substr(0, size)));
    }
  }
}

TEST(ReplayCorpus, TheCheckFindsTracesThatCannotBeReplayed) {
  using replay::Action;
  using replay::Operation;
  const auto refused = [](const std::vector<Operation>& operations, std::uint32_t buffers) {
    try {
      check_trace({.name = {},
                   .operations = operations,
                   .buffers = buffers,
                   .streams = 1,
                   .cut = {},
                   .notes = {}});
    } catch (const std::logic_error&) {
      return true;
    }
    return false;
  };
  const Operation allocate{.bytes = {8}};
  const Operation free{.bytes = {8}, .action = Action::kFree};
  EXPECT_FALSE(refused({allocate, free}, 1));
  EXPECT_TRUE(refused({}, 0));
  EXPECT_TRUE(refused({allocate}, 2));
  EXPECT_TRUE(refused({allocate, allocate}, 2));
  EXPECT_TRUE(refused({free}, 0));
  EXPECT_TRUE(refused({allocate, free, free}, 1));
  EXPECT_TRUE(refused({{.bytes = {}}}, 1));
  EXPECT_TRUE(refused({{.bytes = {8}, .stream = 1}}, 1));
}

}  // namespace
}  // namespace weir::testing
