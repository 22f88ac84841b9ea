// What is special in a .pftrace. That it is read back: ../files/round_trip_test.cpp.

#include "tools/timeline/perfetto/perfetto.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "allocator/base/error.hpp"
#include "tests/timeline/chrome/files.hpp"
#include "tests/timeline/support/made_timeline.hpp"
#include "tools/timeline/perfetto/wire.hpp"

namespace weir::testing {
namespace {

using timeline::Process;
using timeline::read_perfetto_bytes;
using timeline::ReadLimits;
using timeline::Timeline;
using timeline::testing::made_process;

std::string written(const Process& process) {
  timeline::testing::StringSink sink;
  timeline::testing::write_in_flushes({process}, *timeline::make_perfetto_writer(sink));
  return sink.text;
}

TEST(Perfetto, AnEventTakesThirtyBytesAtMost) {
  const Process run = made_process({.batches = 2'000});
  const std::string bytes = written(run);
  const double each = static_cast<double>(bytes.size()) / static_cast<double>(run.records.size());
  std::printf("%zu records, %zu bytes, %.1f bytes an event\n", run.records.size(), bytes.size(),
              each);
  RecordProperty("bytes_per_event", std::to_string(each));
  EXPECT_LE(each, 30.0);
}

TEST(Perfetto, AnythingElseIsRefusedInOneLine) {
  const auto refusal = [](std::string_view bytes, const ReadLimits& limits = {}) -> std::string {
    try {
      (void)read_perfetto_bytes(bytes, "some\nfile", limits);
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
      return error.what();
    }
    return {};
  };
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("[\n{\"ph\":\"X\"}]\n        "), "");
  EXPECT_NE(refusal(std::string(1000, '\0')), "");
  EXPECT_NE(refusal(std::string(1000, '\xFF')), "");
  const std::string bytes = written(made_process());
  EXPECT_EQ(refusal(bytes), "");
  EXPECT_NE(refusal(bytes, {.max_records = 10}).find("10 records"), std::string::npos);
  EXPECT_NE(refusal(bytes, {.max_names = 3}).find("from 1 to 3"), std::string::npos);
  EXPECT_NE(refusal(bytes, {.max_bytes = 100}), "");
  EXPECT_NE(refusal(bytes + bytes, {.max_processes = 1}), "");
  EXPECT_NE(refusal(bytes, {.max_string = 2}), "");
}

TEST(Perfetto, AFileThatClaimsMoreThanItHasEndsInOneLineOrIsCut) {
  const std::string good = written(made_process({.batches = 2}));
  // A packet of 10^12 bytes.
  std::string claim = good;
  timeline::wire::put_key(claim, 1, timeline::wire::Type::kBytes);
  timeline::wire::put_varint(claim, 1'000'000'000'000);
  const Timeline cut = read_perfetto_bytes(claim, "memory");
  EXPECT_EQ(cut.processes.size(), 1U);
  // Names of number 10^12, and records before any process.
  std::string name;
  timeline::wire::put(name, 1, std::uint64_t{1'000'000'000'000});
  timeline::wire::put(name, 2, "far");
  std::string far;
  {
    const timeline::wire::Message within(far, 1);
    timeline::wire::put(far, 90002, name);
  }
  EXPECT_THROW((void)read_perfetto_bytes(good + far, "memory"), UsageError);
  EXPECT_THROW((void)read_perfetto_bytes(far + good, "memory"), UsageError);
}

TEST(Perfetto, UnknownFieldsAreSkipped) {
  const std::string good = written(made_process({.batches = 2}));
  std::string foreign;
  {
    const timeline::wire::Message within(foreign, 1);
    timeline::wire::put(foreign, 777, std::uint64_t{5});
    timeline::wire::put(foreign, 778, "text");
  }
  timeline::wire::put(foreign, 99, "beside the packets");
  const Timeline read = read_perfetto_bytes(foreign + good + foreign, "memory");
  ASSERT_EQ(read.processes.size(), 1U);
  EXPECT_TRUE(read.processes[0].complete);
}

}  // namespace
}  // namespace weir::testing
