// Running programs in `weir top`: weir-train, and one with libweir.so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "live_support.hpp"
#include "support/child_process.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using weir::testing::ChildProcess;
using weir::testing::Finished;
using Json = nlohmann::json;

constexpr std::uint64_t kMib = std::uint64_t{1} << 20U;

/// The output of `weir top` about the programs that publish in `place`.
Json programs_in(const Place& place) {
  const Finished top = ChildProcess({"top", "--once", "--json", "-"},
                                    {.environment = {{"WEIR_PUBLISH", place.path()}}})
                           .wait();
  EXPECT_EQ(top.exit_code, 0) << top.err;
  return Json::parse(top.out).at("programs");
}

/// The only program there, once `shows` is true of it. Null after enough tries for a slow machine,
/// or one that delays the program's thread.
Json await_program(const Place& place, const std::function<bool(const Json&)>& shows) {
  constexpr int kTries = 1500;
  constexpr std::chrono::milliseconds kPause{20};
  Json last;
  for (int i = 0; i < kTries; ++i) {
    last = programs_in(place);
    if (last.size() == 1 && shows(last[0])) return last[0];
    std::this_thread::sleep_for(kPause);
  }
  ADD_FAILURE() << "never shown so: " << last.dump(1);
  return nullptr;
}

/// Its device has a name, a sample after its first use, and batches pass.
bool is_under_way(const Json& program) {
  return !program["devices"].empty() && program["batches_per_second"].is_number() &&
         program["batches_per_second"] > 0 && program["allocated_bytes"] > 0;
}

/// Checks what holds for any program with this `budget`.
void expect_whole(const Json& program, std::uint64_t budget) {
  EXPECT_EQ(program["budget_bytes"], budget);
  EXPECT_GT(program["settled_batches"], 0);
  EXPECT_LE(program["reserved_bytes"], budget);
  EXPECT_LE(program["reserved_bytes"], program["peak_reserved_bytes"]);
  const auto bytes = [&program](const char* name) { return program[name].get<std::uint64_t>(); };
  EXPECT_EQ(bytes("allocated_bytes") + bytes("awaiting_bytes") + bytes("cached_bytes"),
            bytes("reserved_bytes"));
  EXPECT_EQ(program["failures"], 0);
}

void expect_gone(const Place& place) {
  EXPECT_EQ(place.files(), 0U);
  EXPECT_EQ(programs_in(place), Json::array());
}

/// Trains with `program` until it is shown as training.
void expect_training_shown(const std::string& program, const std::string& device) {
  constexpr int kInterrupted = 130;
  const Place place;
  ChildProcess training({"run", "--device", device, "--batches", "1000000000", "--batch-size", "16",
                         "--budget", "64MiB"},
                        {.program = program, .environment = {{"WEIR_PUBLISH", place.path()}}});
  const Json shown = await_program(
      place, [](const Json& each) { return is_under_way(each) && each["idle_share"].is_number(); });
  training.send(SIGINT);
  EXPECT_EQ(training.wait().exit_code, kInterrupted);
  expect_gone(place);
  ASSERT_FALSE(shown.is_null());
  expect_whole(shown, 64 * kMib);
  EXPECT_EQ(shown["devices"], Json::array({device}));
  EXPECT_THAT(shown["program"], HasSubstr("run --device " + device + " --batches"));
  EXPECT_GT(shown["busy_ns"], 0);
  EXPECT_LE(shown["idle_share"], 1);
}

TEST(WeirTopPrograms, ShowTrainingOnTheCpuUntilItEnds) {
  expect_training_shown(TRAIN_PROGRAM, "cpu");
}

#ifdef TRAIN_STANDIN
TEST(WeirTopPrograms, ShowTrainingOnTheStandInUntilItEnds) {
  expect_training_shown(TRAIN_STANDIN, "cuda");
}
#endif

#ifdef SWAP_IN
TEST(WeirTopPrograms, ShowAProgramUnderTheLibraryUntilItEnds) {
  const Place place;
  ChildProcess program(
      {}, {.program = CUDA_PROGRAM,
           .environment = {
               {"WEIR_PUBLISH", place.path()}, {"WEIR_BUDGET", "64MiB"}, {"LD_PRELOAD", SWAP_IN}}});
  const Json shown = await_program(place, is_under_way);
  program.send(SIGINT);
  const Finished end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  expect_gone(place);
  ASSERT_FALSE(shown.is_null());
  expect_whole(shown, 64 * kMib);
  EXPECT_EQ(shown["devices"], Json::array({"GPU 0"}));
  EXPECT_GE(shown["allocated_bytes"], 3 * kMib) << "what the program keeps";
  EXPECT_TRUE(shown["idle_share"].is_null()) << "the library does not time the device";
}
#endif

}  // namespace
}  // namespace weir::timeline::testing
