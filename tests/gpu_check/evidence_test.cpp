#include "tools/gpu_check/report/evidence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "gpu_check/sample.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::gpu_check {
namespace {

using ::testing::ElementsAre;
using weir::testing::json;
using weir::testing::TemporaryDirectory;
using weir::testing::write_file;

TEST(GpuEvidence, GathersWhatTheStepsLeft) {
  const TemporaryDirectory run;
  write_file(run.file("info.json"), weir::testing::made_up_machine().dump());
  write_file(run.file("steps.tsv"),
             "tests\t1\t3\t40\tweir-gpu test\nmemcheck\t0\t3\t40\tcompute-sanitizer\n"
             "bench\t0\t3\t40\tweir-gpu bench\nracecheck\t-\t0\t40\tnot found\n");
  write_file(run.file("tests.json"),
             R"({"made up": 1, "deep": [{"x_per_batch": [1, 2], "y": 3}], "z_per_batch": []})");
  write_file(run.file("memcheck.log"), "========= COMPUTE-SANITIZER\nERROR SUMMARY: 5 errors\n");
  write_file(run.file("bench.json"), "{\"cut sh");

  const json found = gather(run.file("."), "2000-01-01");
  EXPECT_EQ(found.at("date"), "2000-01-01");
  EXPECT_EQ(found.at("machine"), weir::testing::made_up_machine());
  EXPECT_EQ(figures_of(found, "tests"), json::parse(R"({"made up": 1, "deep": [{"y": 3}]})"));
  EXPECT_EQ(step_of(found, "tests").exit_code, 1);
  EXPECT_EQ(step_of(found, "tests").command, "weir-gpu test");
  EXPECT_EQ(found.at("steps")[1].at("summary"), "ERROR SUMMARY: 5 errors");
  EXPECT_TRUE(figures_of(found, "bench").is_null());
  EXPECT_EQ(found.at("steps")[2].at("unreadable"), "bench.json");
  EXPECT_EQ(step_of(found, "racecheck").left_out, "not found");
  EXPECT_FALSE(step_of(found, "no such step").ran());
}

/// What `gather` makes of a facts.json with this text, of a step that crashed.
json crashed_facts(const std::string& text) {
  const TemporaryDirectory run;
  write_file(run.file("info.json"), weir::testing::made_up_machine().dump());
  write_file(run.file("steps.tsv"), "facts\t139\t3\t40\tweir-gpu facts\n");
  write_file(run.file("facts.json"), text);
  return gather(run.file("."), "2000-01-01");
}

TEST(GpuEvidence, AListThatIsCutKeepsWhatWasWritten) {
  const std::string begin = "{\"facts\":[\n{\"fact\":\"a\",\"answer\":\"1\"}";
  const json first{{{"fact", "a"}, {"answer", "1"}}};
  json both = first;
  both.push_back({{"fact", "b"}});
  const auto facts = [](const std::string& text) {
    const json found = figures_of(crashed_facts(text), "facts");
    EXPECT_EQ(found.value("cut", false), true);
    return found.value("facts", json());
  };
  EXPECT_EQ(facts(begin), first);
  EXPECT_EQ(facts(begin + ",\n{\"fact\":\"b\""), both);
  EXPECT_EQ(facts(begin + ",\n{\"fact\":\"b"), first);
  EXPECT_EQ(facts(begin + ",\n{\"fact\":\"b\",\"answer\":\"2"), first);
  EXPECT_EQ(facts("{\"facts\":["), json::array());
  const json whole = figures_of(crashed_facts(begin + "\n]}\n"), "facts");
  EXPECT_FALSE(whole.contains("cut"));
  EXPECT_EQ(whole.at("facts"), first);
  EXPECT_EQ(crashed_facts("{\"fac").at("steps")[0].at("unreadable"), "facts.json");
}

TEST(GpuEvidence, WithoutAMachineThereIsNothingToReportOn) {
  const TemporaryDirectory run;
  EXPECT_THROW((void)gather(run.file("."), "2000-01-01"), Error);
  json nowhere{{"machine", weir::testing::made_up_machine()}};
  EXPECT_EQ(device_slug(nowhere), "made-up-gpu-1000-test-sample");
  nowhere["machine"]["gpus"] = json::array();
  EXPECT_THROW((void)device_slug(nowhere), Error);
}

TEST(GpuEvidence, CountsTestsByHowTheyEnded) {
  const json googletest = json::parse(R"({"testsuites": [{"name": "MadeUp", "testsuite": [
    {"name": "A", "status": "RUN", "result": "COMPLETED"},
    {"name": "B", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "made up"}]},
    {"name": "C", "status": "RUN", "result": "SKIPPED"},
    {"name": "D", "status": "NOTRUN", "result": "SUPPRESSED"}]}]})");
  const TestCounts counts = count_tests(googletest);
  EXPECT_EQ(counts.passed, 1U);
  EXPECT_THAT(counts.failed, ElementsAre("MadeUp.B"));
  EXPECT_THAT(counts.skipped, ElementsAre("MadeUp.C"));
}

TEST(GpuEvidence, FindsTheLastSummaryOfASanitizer) {
  EXPECT_EQ(sanitizer_summary("========= X\n========= ERROR SUMMARY: 1 error\n"
                              "========= ERROR SUMMARY: 0 errors\nbye\n"),
            "ERROR SUMMARY: 0 errors");
  EXPECT_EQ(sanitizer_summary("nothing of the kind\n"), "");
}

}  // namespace
}  // namespace weir::gpu_check
