// How each file's format is recognized.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../chrome/files.hpp"
#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using weir::testing::message_of;

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
