#include "trainer/wide/wide_settings.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/wide/wide_agreement.hpp"
#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {
namespace {

/// As a command line without flags leaves it.
WideSettings unset() {
  return WideSettings::from_environment([](const char*) { return nullptr; },
                                        Setting<std::string>{"cpu"});
}

TEST(WideSettings, ScaleRoundsEachWidthToTheNearestWholeNumber) {
  WideSettings settings = unset();
  EXPECT_EQ(settings.widths(), (std::vector<std::size_t>{250'000, 1024, 512, 200'000}));
  settings.scale = 0.02;
  EXPECT_EQ(settings.widths(), (std::vector<std::size_t>{5000, 20, 10, 4000}));
  settings.scale = 0.001;
  EXPECT_EQ(settings.widths(), (std::vector<std::size_t>{250, 1, 1, 200}));
}

TEST(WideSettings, RatesAndEntriesFollowWhatIsChosen) {
  WideSettings settings = unset();
  settings.optimizer = Optimizer::kAdamax;
  settings.settle();
  EXPECT_EQ(settings.train.learning_rate.value, 2e-3);
  EXPECT_EQ(settings.nnz.value, 500U);
  settings = unset();
  settings.train.learning_rate = 0.5;
  settings.scale = 0.01;
  settings.settle();
  EXPECT_EQ(settings.train.learning_rate.value, 0.5);
  EXPECT_EQ(settings.nnz.value, 250U) << "a tenth of 2500 columns";
}

TEST(WideSettings, RefusesWhatDoesNotBelongTogether) {
  const auto refused = [](const auto& change) {
    WideSettings settings = unset();
    change(settings);
    EXPECT_THROW(settings.settle(), UsageError);
  };
  refused([](WideSettings& s) { s.train.momentum = {0.5, "--momentum"}; });
  refused([](WideSettings& s) {
    s.lazy_rows = true;
    s.optimizer = Optimizer::kSgd;
  });
  refused([](WideSettings& s) { s.resume = true; });
  refused([](WideSettings& s) { s.keep_data = DataPlace::kDevice; });
  refused([](WideSettings& s) { s.every = {{.batches = 3}, "--every"}; });
  refused([](WideSettings& s) { s.nnz = {200'000, "--nnz"}; });
  refused([](WideSettings& s) { s.checkpoint = {"/proc/self/status", "--checkpoint"}; });
}

TEST(WideSettings, DrawsNoMoreLabelsThanThereAre) {
  WideSettings settings = tiny_wide();
  settings.outputs = 2;
  settings.settle();
  EXPECT_EQ(settings.draw().shape().most_labels, 2U);
}

TEST(WideSettings, NamesTheFlagOfEntriesThatDoNotFitARow) {
  WideSettings settings = tiny_wide();
  settings.nnz = {41, "--nnz"};
  EXPECT_EQ(message_of<UsageError>([&] { settings.settle(); }),
            "--nnz='41' is not allowed: at most two thirds of the inputs, which are 40");
}

TEST(WideSettings, NamesTheDataSetThatIsTooWide) {
  WideSettings settings = tiny_wide();
  SparseSet set;
  set.train.columns = kMostWideWidth + 1;
  set.train.classes = 3;
  settings.data = std::make_shared<const SparseSet>(std::move(set));
  settings.inputs = {kMostWideWidth + 1, "--data"};
  settings.data_directory = {"folder", "--data"};
  EXPECT_EQ(message_of<UsageError>([&] { settings.settle(); }).substr(0, 33),
            "--data='folder' is not allowed: w");
}

TEST(WideSettings, ParsesListsNumbersAndNames) {
  EXPECT_EQ(parse_hidden("--hidden", "7"), std::vector<std::size_t>{7});
  EXPECT_EQ(parse_hidden("--hidden", "1024,512"), (std::vector<std::size_t>{1024, 512}));
  for (const char* bad : {"", ",", "7,", "0", "7,-1", "x", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"}) {
    EXPECT_THROW((void)parse_hidden("--hidden", bad), UsageError) << bad;
  }
  EXPECT_EQ(parse_scale("--scale", "0.02"), 0.02);
  for (const char* bad : {"0", "-1", "17", "nan", "1x"}) {
    EXPECT_THROW((void)parse_scale("--scale", bad), UsageError) << bad;
  }
  EXPECT_THROW((void)parse_name<DataPlace>("--keep-data", "disk"), UsageError);
  EXPECT_THROW((void)parse_name<Optimizer>("--optimizer", "adagrad"), UsageError);
  EXPECT_THROW((void)parse_name<Precision>("--precision", "fp8"), UsageError);
  EXPECT_THROW((void)parse_name<SparseLoss>("--loss", "hinge"), UsageError);
}

TEST(WideSettings, AReaderMayBeSlowedByTenSecondsAtMost) {
  using std::chrono::nanoseconds;
  EXPECT_EQ(parse_read_time("--read-time", "500us"), nanoseconds(500'000));
  EXPECT_EQ(parse_read_time("--read-time", "10s"), std::chrono::seconds(10));
  for (const char* bad : {"", "5", "0ms", "-1ms", "11s", "1h", "1.5ms"}) {
    EXPECT_THROW((void)parse_read_time("--read-time", bad), UsageError) << bad;
  }
  WideSettings settings = unset();
  EXPECT_EQ(settings_text(settings.lines()).find("read-time"), std::string::npos);
  settings.read_time = {std::chrono::milliseconds(20), "--read-time"};
  EXPECT_NE(settings_text(settings.lines()).find("read-time=20ms (--read-time)"), std::string::npos)
      << settings_text(settings.lines());
}

TEST(WideSettings, ParsesWhenACheckpointIsDue) {
  using std::chrono::seconds;
  EXPECT_EQ(parse_every("--every", "200").batches, 200U);
  EXPECT_EQ(parse_every("--every", "5min").time, seconds(300));
  const CheckpointSchedule both = parse_every("--every", "2h,7");
  EXPECT_EQ(both.batches, 7U);
  EXPECT_EQ(both.time, seconds(7200));
  EXPECT_EQ(format_every(both), "7,7200s");
  for (const char* bad : {"", "0", "5min,", "1,2", "1s,2s", "min", "-1", "1d"}) {
    EXPECT_THROW((void)parse_every("--every", bad), UsageError) << bad;
  }
}

}  // namespace
}  // namespace weir::testing
