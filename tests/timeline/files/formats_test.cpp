// Every format of the table is recognised, written, read back and refused alike; other files are
// refused.

#include "tools/timeline/files/formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "../chrome/files.hpp"
#include "../chrome/random_process.hpp"
#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "support/random_seed.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using weir::testing::message_of;
using weir::testing::random_seed;
using weir::testing::seed_message;

/// Two processes with every kind of record; their texts are valid UTF-8.
Timeline random_timeline(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Timeline timeline;
  for (int i = 0; i < 2; ++i) {
    Process& process = timeline.processes.emplace_back(random_process(random));
    // Some formats keep other bytes, and some do not.
    for (std::string& name : process.names) name = valid_utf8(name);
    for (std::string* text : {&process.info.program, &process.info.host, &process.info.boot}) {
      *text = valid_utf8(*text);
    }
  }
  return timeline;
}

std::string bytes_as(const NamedFormat& as, const Timeline& timeline) {
  StringSink sink;
  write_timeline(timeline, as, sink);
  return sink.text;
}

TEST(TimelineFormats, EverySuffixSelectsItsOwnFormatAlone) {
  std::set<std::string_view> seen;
  for (const FileFormat& format : file_formats()) {
    EXPECT_FALSE(format.suffixes.empty()) << format.name;
    for (const std::string_view suffix : format.suffixes) {
      EXPECT_TRUE(seen.insert(suffix).second) << suffix;
      const auto found = find_format("run" + std::string(suffix), FormatUse::kWrite);
      ASSERT_TRUE(found) << suffix;
      EXPECT_EQ(found->format, &format) << suffix;
      EXPECT_EQ(found->suffix, suffix);
    }
  }
}

TEST(TimelineFormats, EveryEntrySaysHowItIsWrittenAndReadOrWhyNot) {
  for (const FileFormat& format : file_formats()) {
    SCOPED_TRACE(format.name);
    EXPECT_NE(format.make_writer == nullptr, format.whole == nullptr);
    EXPECT_EQ(format.make_writer == nullptr, format.recognises_ours == nullptr);
    EXPECT_EQ(format.read == nullptr, !format.why_not_read.empty());
  }
}

TEST(TimelineFormats, WhatIsWrittenIsRecognisedAsThatFormatAlone) {
  const Timeline timeline = random_timeline(1);
  for (const FileFormat& format : file_formats()) {
    const std::string bytes = bytes_as({&format, {}}, timeline);
    for (const FileFormat& other : file_formats()) {
      SCOPED_TRACE(std::string(format.name) + " as " + std::string(other.name));
      EXPECT_EQ(other.recognises(bytes), &format == &other);
      if (other.recognises_ours == nullptr) continue;
      EXPECT_EQ(other.recognises_ours(bytes), &format == &other);
    }
  }
}

TEST(TimelineFormats, WhatIsWrittenWithAnySuffixIsReadBackOrRefusedWithItsReason) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  const Timeline timeline = random_timeline(seed);
  for (const FileFormat& format : file_formats()) {
    for (const std::string_view suffix : format.suffixes) {
      SCOPED_TRACE(suffix);
      const MemoryFile file(bytes_as({&format, suffix}, timeline));
      if (format.read == nullptr) {
        EXPECT_THAT(message_of<UsageError>([&] { (void)read_timeline(file.path()); }),
                    HasSubstr(std::string(format.why_not_read)));
        continue;
      }
      const Timeline read = read_timeline(file.path());
      ASSERT_EQ(read.processes.size(), timeline.processes.size());
      for (std::size_t i = 0; i < read.processes.size(); ++i) {
        expect_same(timeline.processes[i], read.processes[i]);
      }
    }
  }
}

TEST(TimelineFormats, AnUnknownSuffixIsRefusedWithThoseThatAreAllowed) {
  for (const char* name : {"run", "run.txt", "json", ".JSON", ""}) {
    for (const FormatUse use : {FormatUse::kRecord, FormatUse::kWrite, FormatUse::kRead}) {
      EXPECT_FALSE(find_format(name, use)) << name;
      EXPECT_EQ(message_of<UsageError>([&] { (void)require_format("-o", name, use); }),
                "-o='" + std::string(name) + "' is not allowed: a name that ends in " +
                    list_suffixes(use));
    }
  }
}

TEST(TimelineFormats, ListsThemForPeople) {
  EXPECT_EQ(list_suffixes(FormatUse::kRecord), ".json, .json.gz or .pftrace");
  EXPECT_EQ(list_suffixes(FormatUse::kWrite), ".json, .json.gz, .pftrace or .pickle");
  EXPECT_EQ(list_formats(FormatUse::kRead, "and"),
            "Chrome trace JSON (.json, .json.gz) and Perfetto traces (.pftrace)");
}

std::string refusal_of(const std::string& path) {
  std::string message = message_of<UsageError>([&] { (void)read_timeline(path); });
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

std::string refusal_of_bytes(std::string_view bytes) {
  return refusal_of(MemoryFile(bytes).path());
}

TEST(TimelineRead, TellsJsonByItsFirstBytes) {
  Timeline timeline;
  timeline.processes.emplace_back().complete = true;
  const std::string bytes = to_chrome(timeline);
  EXPECT_TRUE(read_timeline(MemoryFile(bytes).path()).processes.at(0).complete);
  EXPECT_TRUE(read_timeline(MemoryFile("\n \t" + bytes).path()).processes.at(0).complete);
  EXPECT_TRUE(
      read_timeline(MemoryFile("{\"traceEvents\":" + bytes + "}").path()).processes.at(0).complete);
}

TEST(TimelineRead, SaysWhatAFileIsInstead) {
  EXPECT_THAT(refusal_of_bytes(""), HasSubstr("it is empty"));
  EXPECT_THAT(refusal_of_bytes("\x80\x04"), HasSubstr("a pickle"));
  EXPECT_THAT(refusal_of_bytes("\x7f"
                               "ELF"),
              HasSubstr("no known format; allowed are Chrome trace JSON"));
  EXPECT_THAT(refusal_of_bytes("[1, 2]"), HasSubstr("no known format"));
  EXPECT_THAT(refusal_of("/"), HasSubstr("/: cannot be read (Is a directory)"));
  EXPECT_THAT(refusal_of("/nowhere"), HasSubstr("No such file"));
  EXPECT_THAT(refusal_of("/dev/zero"), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal_of("-"), HasSubstr("not from standard input"));
}

}  // namespace
}  // namespace weir::timeline::testing
