// The timeline of known work on a GPU, with CUPTI's records. The page of tools/gpu-check shows the
// property `found` of each test.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "gpu_check/timeline/work.hpp"
#include "tools/timeline/cupti/library.hpp"
#include "tools/timeline/cupti/source.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/recorder/recording.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::gpu_check {
namespace {

class TimelineOnDevice : public ::testing::Test {
 protected:
  /// Records once for all tests, with a started source: it sees only streams made after its start.
  static void SetUpTestSuite() {
    const Environment environment = process_environment();
    const auto places =
        timeline::cupti::cupti_places(environment, timeline::cupti::loaded_runtimes());
    if (timeline::cupti::open_library(places, missing_cupti) == nullptr) return;
    timeline::RecordingOptions options;
    options.activity = timeline::make_cupti_source(environment);
    refusal = options.activity->start();
    if (!refusal.empty()) return;
    options.environment = environment;
    const testing::TemporaryDirectory directory;
    timeline::TimelineSettings settings;
    settings.file = {timeline::parse_timeline_file("FILE", directory.file("run.pftrace")), "FILE"};
    timeline::Recorder* const recorder = timeline::begin_recording(settings, std::move(options));
    ASSERT_NE(recorder, nullptr);
    launched = do_work(WorkSize::kMeasured);
    const timeline::RecordingResult result = recorder->finish();
    ASSERT_NE(result.file, "") << result.note;
    const timeline::Timeline read = timeline::read_timeline(result.file);
    ASSERT_FALSE(read.processes.empty());
    all_faults = faults_of(read.processes.front(), launched);
  }
  void SetUp() override {
    if (!missing_cupti.empty()) RecordProperty("found", missing_cupti);
    if (!missing_cupti.empty()) GTEST_SKIP() << missing_cupti;
    ASSERT_EQ(refusal, "");
    ASSERT_FALSE(launched.empty());
  }
  static void expect_none(const std::string& faults, const std::string& otherwise) {
    RecordProperty("found", faults.empty() ? otherwise : faults);
    EXPECT_EQ(faults, "");
  }

  static inline std::string missing_cupti;
  static inline std::string refusal;
  static inline std::vector<Stretch> launched;
  static inline Faults all_faults;
};

TEST_F(TimelineOnDevice, HasEveryKernelAndCopyOnce) {
  std::uint64_t operations = 0;
  for (const Stretch& stretch : launched) operations += stretch.operations;
  expect_none(all_faults.counts, std::to_string(operations) + " kernels and copies");
}

TEST_F(TimelineOnDevice, TimesAreThoseOfCudaEvents) {
  const auto timed =
      std::ranges::count_if(launched, [](const Stretch& one) { return one.is_timed; });
  expect_none(all_faults.times,
              std::to_string(timed) + " stretches within 2% of the events' times");
  EXPECT_GT(timed, 0);
}

TEST_F(TimelineOnDevice, JoinsEachToItsBatchInOrder) {
  expect_none(all_faults.places, "at most 1 ms outside the host's times");
}

}  // namespace
}  // namespace weir::gpu_check
