#include "tools/timeline/cupti/library.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/environment.hpp"
#include "timeline/cupti/records.hpp"
#include "tools/timeline/cupti/source.hpp"

namespace weir::timeline::cupti {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::environment_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CuptiLibrary, TheCopyThatIsLoadedComesBeforeAnyFile) {
  EXPECT_THAT(cupti_places(environment_of({}), {}).loaded,
              ElementsAre("libcupti.so.13", "libcupti.so.12", "libcupti.so"));
}

TEST(CuptiLibrary, WhatLiesBesideTheRuntimeOfTheProcessComesFirst) {
  const auto wheels =
      cupti_places(environment_of({}), {"/site/nvidia/cuda_runtime/lib/libcudart.so.12"});
  EXPECT_THAT(wheels.files, Contains("/site/nvidia/cuda_cupti/lib/libcupti.so.12"));
  const auto wheels13 = cupti_places(environment_of({}), {"/site/nvidia/cu13/lib/libcudart.so.13"});
  EXPECT_EQ(wheels13.files.front(), "/site/nvidia/cu13/lib/libcupti.so.13");
  const auto toolkit = cupti_places(environment_of({}), {"/opt/cuda/lib64/libcudart.so.13"});
  EXPECT_THAT(toolkit.files, Contains("/opt/cuda/extras/CUPTI/lib64/libcupti.so.13"));
}

TEST(CuptiLibrary, TheToolkitThatTheEnvironmentNamesIsTried) {
  const auto places = cupti_places(environment_of({{"CUDA_HOME", "/opt/cuda"}}), {});
  EXPECT_EQ(places.files.front(), "libcupti.so.13");
  EXPECT_THAT(places.files, Contains("/opt/cuda/extras/CUPTI/lib64/libcupti.so.13"));
}

TEST(CuptiLibrary, TheFileOfWEIR_CUPTIIsTheOnlyOne) {
  const auto places = cupti_places(environment_of({{"WEIR_CUPTI", "/mine/libcupti.so"}}),
                                   {"/opt/cuda/lib64/libcudart.so.13"});
  EXPECT_THAT(places.loaded, IsEmpty());
  EXPECT_THAT(places.files, ElementsAre("/mine/libcupti.so"));
}

TEST(CuptiLibrary, AMissingFileIsNamedInOneLine) {
  std::string why;
  EXPECT_EQ(open_library(cupti_places(environment_of({{"WEIR_CUPTI", "/no/such"}}), {}), why),
            nullptr);
  EXPECT_THAT(why, HasSubstr("/no/such"));
  EXPECT_EQ(why.find('\n'), std::string::npos);
}

TEST(CuptiLibrary, ALibraryThatIsNoCuptiIsNamedInOneLine) {
  std::string why;
  EXPECT_EQ(open_library(cupti_places(environment_of({{"WEIR_CUPTI", "libc.so.6"}}), {}), why),
            nullptr);
  EXPECT_THAT(why, HasSubstr("libc.so.6 is not CUPTI, or too old"));
}

TEST(CuptiLibrary, EachGenerationIsKnownByItsFunctions) {
  std::string why;
  const auto older =
      open_library(cupti_places(environment_of({{"WEIR_CUPTI", WEIR_STANDIN_OLDER}}), {}), why);
  ASSERT_NE(older, nullptr) << why;
  EXPECT_TRUE(older->has_older);
  EXPECT_FALSE(older->has_newer);
  const auto newer =
      open_library(cupti_places(environment_of({{"WEIR_CUPTI", WEIR_STANDIN_NEWER}}), {}), why);
  ASSERT_NE(newer, nullptr) << why;
  EXPECT_TRUE(newer->has_older);
  EXPECT_TRUE(newer->has_newer);
}

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
}  // namespace weir::timeline::cupti
