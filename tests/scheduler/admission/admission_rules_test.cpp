// What the rules tell the control of a batch that the device has run.

#include "scheduler/admission/admission_rules.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace weir {
namespace {

using std::chrono::milliseconds;

constexpr Pressure kPressure{.held = {}, .budget = mib(64), .awaiting = {}};

/// A run in which every batch was held back for 10 ms.
class HeldBackRun {
 public:
  /// Runs a batch with one task on each stream, and returns how much of its idle time we caused.
  std::chrono::nanoseconds caused(const TaskTime& copy, const TaskTime& compute) {
    const auto before = rules_.control().statistics().caused_idle;
    Applicant batch;
    batch.held_back = milliseconds(10);
    rules_.join(batch, "train", 1, kPressure);
    Ticket& ticket = rules_.admit(batch, mib(1), kPressure);
    const Point point{.stream = StreamId{1}, .sequence = ++closed_};
    ticket.touched = {true};
    rules_.close(ticket, {point}, true, {});
    ticket.note_ran(StreamRole::kCopyIn, copy);
    ticket.note_ran(StreamRole::kCompute, compute);
    rules_.settle({closed_});
    return rules_.control().statistics().caused_idle - before;
  }

 private:
  AdmissionRules rules_{RunAhead{}};
  std::uint64_t closed_ = 0;
};

TEST(AdmissionRules, TheGapOfTheBusiestStreamIsOursIfTheOtherHadNothingToDoEither) {
  EXPECT_EQ(HeldBackRun().caused({.device_time = milliseconds(1), .starved = milliseconds(5)},
                                 {.device_time = milliseconds(2), .gap = milliseconds(3)}),
            milliseconds(3));
}

TEST(AdmissionRules, AGapInWhichTheCopiesRanWithoutAPauseIsNotOurs) {
  EXPECT_EQ(HeldBackRun().caused({.device_time = milliseconds(1), .gap = milliseconds(4)},
                                 {.device_time = milliseconds(2), .gap = milliseconds(3)}),
            milliseconds(0));
}

TEST(AdmissionRules, AStreamThatTheBatchDoesNotUseHasNoSay) {
  EXPECT_EQ(HeldBackRun().caused({}, {.device_time = milliseconds(2), .gap = milliseconds(3)}),
            milliseconds(3));
}

TEST(AdmissionRules, TheGapOfAStreamThatIsNotTheBusiestDoesNotCount) {
  EXPECT_EQ(HeldBackRun().caused({.device_time = milliseconds(1), .gap = milliseconds(9)},
                                 {.device_time = milliseconds(2), .gap = milliseconds(0)}),
            milliseconds(0));
}

}  // namespace
}  // namespace weir
