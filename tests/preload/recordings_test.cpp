// What `weir run` makes of its program's recordings.

#include "tools/weir/recordings/recordings.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "support/log_capture.hpp"
#include "tools/timeline/recorder/failure.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::cli {
namespace {

using weir::testing::read_file;
using weir::testing::write_file;

TEST(Recordings, AreNamedAsTheirVariableSays) {
  EXPECT_TRUE(is_recording_of("run.json", "run.json"));
  EXPECT_TRUE(is_recording_of("run.json", "run.71.json")) << "another process has the name";
  EXPECT_TRUE(is_recording_of("run.json.gz", "run.71.json.gz"));
  EXPECT_TRUE(is_recording_of("run-%p.json", "run-71.json"));
  EXPECT_TRUE(is_recording_of("%r1-%p.pftrace", "11-71.pftrace")) << "rank 1";
  EXPECT_TRUE(is_recording_of("50%%.json", "50%.json"));
  EXPECT_TRUE(is_recording_of("50%.json", "50%.json"));
  EXPECT_FALSE(is_recording_of("run.json", "run.json.gz"));
  EXPECT_FALSE(is_recording_of("run.json", "run.oom.json"));
  EXPECT_FALSE(is_recording_of("run-%p.json", "run-.json"));
  EXPECT_FALSE(is_recording_of("run-%p.json", "run-a.json"));
  EXPECT_FALSE(is_recording_of("50%%.json", "50%%.json"));
  EXPECT_FALSE(is_recording_of("run", "run")) << "not a recording's name";
  EXPECT_FALSE(is_recording_of("", ""));
}

class FailurePages : public ::testing::Test {
 protected:
  /// Writes a recording, and the last seconds of a failure.
  void write(const std::string& recording, std::size_t number = 1) const {
    timeline::Timeline timeline;
    timeline.processes.emplace_back().info.program = "loop";
    write_file(folder_.file(recording), "[");
    write_file(timeline::failure_file(folder_.file(recording), number),
               timeline::bytes_of_failure(timeline));
  }
  [[nodiscard]] bool is_page(const std::string& name) const {
    return read_file(folder_.file(name)).find("<title>Weir timeline of loop</title>") !=
           std::string::npos;
  }
  void make(const std::string& pattern) const { make_failure_pages(folder_.file(pattern), began_); }
  [[nodiscard]] std::size_t lines_with(const std::string& text) const {
    return capture_.containing(text).size();
  }

  const weir::testing::TemporaryDirectory folder_;
  const weir::testing::LogCapture capture_;
  const FileTime began_ = file_time_now();
};

TEST_F(FailurePages, EachIsMadeAndNamedInALine) {
  write("run-71.json");
  write("run-71.json", 2);
  write("run-72.json", 5);
  write("other.json");
  make("run-%p.json");
  for (const char* page : {"run-71.oom.html", "run-71.oom.2.html", "run-72.oom.5.html"}) {
    EXPECT_TRUE(is_page(page)) << page;
    EXPECT_EQ(lines_with("what led to the out-of-memory: " + folder_.file(page)), 1U) << page;
  }
  EXPECT_EQ(lines_with(""), 3U);
  EXPECT_EQ(folder_.entries(), 3U + 4U + 3U) << "recordings, their last seconds, and pages";
}

TEST_F(FailurePages, NoneIsMadeOfWhatWasWrittenBefore) {
  write("run.json");
  std::filesystem::last_write_time(folder_.file("run.oom.pftrace"),
                                   began_ - std::chrono::seconds(1));
  make("run.json");
  make_failure_pages("", began_);
  EXPECT_EQ(folder_.entries(), 2U);
  EXPECT_EQ(lines_with(""), 0U);
}

TEST_F(FailurePages, LieBesideTheRecordingAndNotBesideALinkToIt) {
  std::filesystem::create_directory(folder_.file("50%"));
  std::filesystem::create_directory(folder_.file("kept"));
  write("kept/loop.json");
  std::filesystem::create_symlink(folder_.file("kept/loop.json"), folder_.file("50%/run.json"));
  make("50%%/run.json");
  EXPECT_TRUE(is_page("kept/loop.oom.html"));
}

TEST_F(FailurePages, OneThatCannotBeMadeIsSaidAndTheOthersAreMade) {
  write("run.json");
  write("run.json", 2);
  write("run.json", 3);
  write_file(folder_.file("run.oom.pftrace"), "noise");
  std::filesystem::create_directory(folder_.file("run.oom.2.html"));
  make("run.json");
  EXPECT_TRUE(is_page("run.oom.3.html"));
  EXPECT_EQ(lines_with("the page of an out-of-memory cannot be made: "), 2U);
  EXPECT_EQ(lines_with("run.oom.pftrace"), 1U);
  EXPECT_EQ(lines_with("run.oom.2.html"), 1U);
  EXPECT_EQ(lines_with(""), 3U);
}

}  // namespace
}  // namespace weir::cli
