#include "tools/timeline/recorder/settings.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>

#include "support/message_of.hpp"

namespace weir::timeline {
namespace {

using weir::testing::message_of;

Environment variables(std::map<std::string, std::string> all) {
  return [all = std::move(all)](const char* name) -> const char* {
    const auto found = all.find(name);
    return found == all.end() ? nullptr : found->second.c_str();
  };
}

TEST(TimelineSettings, NothingIsRecordedUnlessAFileIsNamed) {
  const auto settings = TimelineSettings::from_environment(variables({}));
  EXPECT_TRUE(settings.file.value.empty());
  EXPECT_FALSE(settings.batches.value);
  EXPECT_EQ(settings.buffer.value, mib(64));
}

TEST(TimelineSettings, ReadsItsVariablesAndSaysWhereTheyCameFrom) {
  const auto settings =
      TimelineSettings::from_environment(variables({{"WEIR_TIMELINE", "run.json"},
                                                    {"WEIR_TIMELINE_BATCHES", "10:20"},
                                                    {"WEIR_TIMELINE_BUFFER", "2MiB"}}));
  EXPECT_EQ(settings.file.value, "run.json");
  EXPECT_EQ(settings.file.source, "WEIR_TIMELINE");
  EXPECT_EQ(settings.batches.value, (BatchRange{10, 20}));
  EXPECT_EQ(settings.buffer.value, mib(2));
}

TEST(TimelineSettings, TheFilesEndingIsItsFormat) {
  EXPECT_EQ(parse_format("x", "a.json").format->name, "Chrome trace JSON");
  EXPECT_EQ(parse_format("x", "a.json.gz").format->name, "Chrome trace JSON");
  EXPECT_EQ(parse_format("x", "a.pftrace").format->name, "Perfetto traces");
  for (const char* name : {"a", "a.gz", "a.pickle", "a.JSON", "json", ""}) {
    EXPECT_EQ(message_of<UsageError>([&] { (void)parse_timeline_file("WEIR_TIMELINE", name); }),
              "WEIR_TIMELINE='" + std::string(name) +
                  "' is not allowed: the name of a file that ends in .json, .json.gz or .pftrace");
  }
}

TEST(TimelineSettings, ARangeOfBatchesLeavesItsEndOutAsPythonsDo) {
  EXPECT_EQ(parse_batch_range("x", "10:20"), (BatchRange{10, 20}));
  EXPECT_EQ(parse_batch_range("x", "10:"), (BatchRange{10, UINT32_MAX}));
  EXPECT_EQ(parse_batch_range("x", ":20"), (BatchRange{0, 20}));
  const BatchRange range{10, 20};
  EXPECT_FALSE(range.contains(9));
  EXPECT_TRUE(range.contains(10));
  EXPECT_TRUE(range.contains(19));
  EXPECT_FALSE(range.contains(20));
}

TEST(TimelineSettings, RefusesWhatIsNoRange) {
  for (const char* text : {"", ":", "10", "20:10", "10:10", "a:b", "1:2:3", "-1:5", "1.5:3", " 1:2",
                           "1:99999999999", "0x1:5", ":0"}) {
    EXPECT_EQ(message_of<UsageError>([&] { (void)parse_batch_range("--timeline-batches", text); }),
              "--timeline-batches='" + std::string(text) +
                  "' is not allowed: a range of batches: 10:20 is 10 to 19, 10: is from 10 on, :20 "
                  "is all before 20");
  }
}

TEST(TimelineSettings, RefusesABufferBelowAMebibyte) {
  EXPECT_EQ(parse_timeline_buffer("x", "1MiB"), mib(1));
  EXPECT_EQ(parse_timeline_buffer("x", "1048576"), mib(1));
  for (const char* text : {"1048575", "0", "much", "-1MiB"}) {
    EXPECT_EQ(message_of<UsageError>([&] { (void)parse_timeline_buffer("BUFFER", text); }),
              "BUFFER='" + std::string(text) + "' is not allowed: a size of 1MiB or more");
  }
}

TEST(TimelineSettings, TheNameHasTheProcessAndTheRankInIt) {
  const Setting<std::string> file{"%r/run.%p.%p.%q.json", "test"};
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(expand_name(file, variables({{"RANK", "3"}})),
            "3/run." + process + "." + process + ".%q.json");
  EXPECT_EQ(expand_name({"run.json", "test"}, variables({})), "run.json");
  EXPECT_EQ(expand_name({"100%%p/50%/%.json", "test"}, variables({})), "100%p/50%/%.json");
  EXPECT_EQ(name_of_path("100%p/%r.json"), "100%%p/%%r.json");
}

TEST(TimelineSettings, TheRankIsTheFirstThatALauncherHasSet) {
  std::map<std::string, std::string> all;
  std::uint32_t rank = 10;
  for (const char* name :
       {"LOCAL_RANK", "SLURM_PROCID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "RANK"}) {
    all[name] = std::to_string(++rank);
    EXPECT_EQ(find_rank(variables(all)), rank) << name;
  }
  EXPECT_EQ(find_rank(variables({{"RANK", "none"}, {"PMI_RANK", "2"}})), 2U);
  EXPECT_FALSE(find_rank(variables({})));
}

TEST(TimelineSettings, ANameThatNeedsARankIsRefusedWithoutOne) {
  EXPECT_EQ(message_of<UsageError>([] {
              (void)expand_name({"run.%r.json", "WEIR_TIMELINE"}, variables({}));
            }),
            "WEIR_TIMELINE='run.%r.json' is not allowed: a name without %r, or with one of RANK, "
            "OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID and LOCAL_RANK set");
}

}  // namespace
}  // namespace weir::timeline
