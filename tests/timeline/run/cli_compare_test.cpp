// weir-train compare --timeline: a recording and a page of each policy.

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "runs.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using weir::testing::read_file;
using weir::testing::run_weir_train;

using CompareTimelines = RecordedRuns;

// More inputs than fit in the budget, 2 MiB each. They are made beforehand, so that a frontend
// slowed by a sanitizer is still ahead of the device.
constexpr int kBatches = 40;

TEST_F(CompareTimelines, ShowWhatEachPolicyDoes) {
  const Finished run =
      run_weir_train({"compare", "--device", "cpu", "--small", "--ring", "4", "--batch-size",
                      "1024", "--budget", "48MiB", "--batches", std::to_string(kBatches),
                      "--rounds", "1", "--no-search", "--timeline", file("pages %p")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::map<std::string, nlohmann::json> policies;
  for (const std::string policy : {"unbounded", "backstop", "throttled", "barrier"}) {
    SCOPED_TRACE(policy);
    EXPECT_THAT(run.err, HasSubstr("timeline: " + file("pages %p/" + policy + ".html") + "\n"));
    const std::string page = read_file(file("pages %p/" + policy + ".html"));
    EXPECT_THAT(page, HasSubstr("weir-train, policy " + policy));
    const nlohmann::json report = this->report("pages %p/" + policy + ".json");
    EXPECT_EQ(report["summary"]["lost"], 0);
    EXPECT_LE(report["summary"]["peak_batch"], kBatches) << "each run counts its batches from one";
    ASSERT_EQ(report["devices"].size(), 1U);
    EXPECT_EQ(report["devices"][0]["name"], "device");
    policies[policy] = report;
  }
  const auto peak = [&](const char* policy) {
    return policies[policy]["summary"]["peak"].get<std::uint64_t>();
  };
  const auto barriers = [&](const char* policy) {
    return policies[policy]["summary"]["barriers"].get<std::uint64_t>();
  };
  EXPECT_EQ(policies["unbounded"]["summary"]["failures"], 1) << "inputs pile up to the budget";
  EXPECT_EQ(policies["throttled"]["summary"]["failures"], 0);
  EXPECT_LT(3 * peak("throttled"), 2 * peak("unbounded")) << "half of the room, and no more";
  EXPECT_LT(peak("barrier"), peak("throttled")) << "one batch's inputs at a time";
  EXPECT_EQ(barriers("barrier"), barriers("throttled") + kBatches) << "one behind each batch";
}

}  // namespace
}  // namespace weir::timeline::testing
