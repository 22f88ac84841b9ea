// This machine's libcupti.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "timeline/cupti/records.hpp"
#include "tools/timeline/cupti/library.hpp"
#include "tools/timeline/cupti/source.hpp"

namespace weir::timeline {
namespace {

class RealCupti : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    const auto places = cupti::cupti_places(process_environment(), cupti::loaded_runtimes());
    if (cupti::open_library(places, why) == nullptr) GTEST_SKIP() << "left out: " << why;
  }
};

TEST_F(RealCupti, WithoutADriverItSaysSoInOneLineAndTheProcessGoesOn) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "left out: there is a driver";
  testing::NamingSink sink;
  std::vector<TimelineRecord> records;
  const auto source = make_cupti_source();
  for (int times = 0; times < 2; ++times) {
    const std::string line = source->start();
    EXPECT_THAT(line, ::testing::StartsWith("kernels and copies are not recorded: CUPTI says "));
    EXPECT_THAT(line, ::testing::HasSubstr("(999)"));
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
  push_external(1, 2);
  pop_external();
  source->collect(ActivitySource::Collect::kAll, sink, records);
  source->stop();
  EXPECT_TRUE(records.empty());
  EXPECT_EQ(source->lost(), 0U);
}

TEST_F(RealCupti, ItHasEveryFunctionThatARecordingNeeds) {
  std::string why;
  const auto places = cupti::cupti_places(process_environment(), cupti::loaded_runtimes());
  const auto library = cupti::open_library(places, why);
  ASSERT_NE(library, nullptr);
  EXPECT_TRUE(library->has_older);
  const cupti::OlderCalls& calls = library->older;
  EXPECT_NE(calls.get_attribute, nullptr);
  EXPECT_NE(calls.set_attribute, nullptr);
  EXPECT_NE(calls.set_thread_id_type, nullptr);
  EXPECT_NE(calls.enable_allocation_source, nullptr);
  EXPECT_NE(calls.register_timestamp, nullptr);
  EXPECT_NE(calls.dropped, nullptr);
  EXPECT_NE(calls.push_external, nullptr);
  EXPECT_NE(calls.pop_external, nullptr);
  EXPECT_NE(library->common.get_callback_name, nullptr);
  EXPECT_NE(library->common.get_result_string, nullptr);
}

}  // namespace
}  // namespace weir::timeline
