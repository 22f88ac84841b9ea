// Releases in a context and the end of a context exclude each other.

#include "tools/preload/context/context_gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace weir::preload::testing {
namespace {

using Turn = ContextGate::Turn;
using EndOfContext = ContextGate::EndOfContext;

constexpr std::chrono::milliseconds kShort{20};

ContextGate::Clock::time_point in(ContextGate::Clock::duration time) {
  return ContextGate::Clock::now() + time;
}

TEST(ContextGate, GivesOneTurnAtATime) {
  ContextGate gate;
  {
    const Turn first(gate, {});
    EXPECT_TRUE(first.granted());
    EXPECT_FALSE(Turn(gate, {}).granted());
    EXPECT_FALSE(Turn(gate, in(kShort)).granted());
  }
  EXPECT_TRUE(Turn(gate, {}).granted());
}

TEST(ContextGate, GivesNoTurnWhileAContextEnds) {
  ContextGate gate;
  {
    const EndOfContext one(gate);
    const EndOfContext other(gate);  // contexts may end together
    EXPECT_FALSE(Turn(gate, {}).granted());
    EXPECT_FALSE(Turn(gate, in(kShort)).granted());
  }
  EXPECT_TRUE(Turn(gate, {}).granted());
}

TEST(ContextGate, WhoWaitsForATurnHasItOnceTheContextHasEnded) {
  ContextGate gate;
  std::optional<EndOfContext> ends(std::in_place, gate);
  bool granted = false;
  std::thread waits([&] { granted = Turn(gate, in(std::chrono::hours(1))).granted(); });
  std::this_thread::sleep_for(kShort);
  ends.reset();
  waits.join();  // and not an hour later
  EXPECT_TRUE(granted);
}

TEST(ContextGate, AContextEndsOnceTheTurnIsOver) {
  ContextGate gate;
  std::atomic<bool> gives{true};
  std::optional<Turn> turn(std::in_place, gate, in(std::chrono::hours(1)));
  std::thread ends([&] {
    const EndOfContext end(gate);
    EXPECT_FALSE(gives);
  });
  std::this_thread::sleep_for(kShort);
  gives = false;
  turn.reset();
  ends.join();
}

}  // namespace
}  // namespace weir::preload::testing
