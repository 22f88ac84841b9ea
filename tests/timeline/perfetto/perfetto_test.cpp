// A .pftrace is read back as written, whole or truncated.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "allocator/base/error.hpp"
#include "support/sanitized.hpp"
#include "tests/timeline/perfetto/recordings.hpp"
#include "tools/timeline/perfetto/reader.hpp"
#include "tools/timeline/perfetto/wire.hpp"
#include "tools/timeline/perfetto/writer.hpp"

namespace weir::testing {
namespace {

using timeline::Process;
using timeline::read_perfetto_bytes;
using timeline::ReadLimits;
using timeline::Timeline;

std::string written(const std::vector<Process>& processes) {
  StringSink sink;
  write_all(processes, *timeline::make_perfetto_writer(sink));
  return sink.bytes();
}

/// Names are equal if records use them.
void expect_equal(const Process& read, const Process& wrote) {
  EXPECT_EQ(read.info.pid, wrote.info.pid);
  EXPECT_EQ(read.info.rank, wrote.info.rank);
  EXPECT_EQ(read.info.program, wrote.info.program);
  EXPECT_EQ(read.info.host, wrote.info.host);
  EXPECT_EQ(read.info.boot, wrote.info.boot);
  EXPECT_EQ(read.info.monotonic_ns, wrote.info.monotonic_ns);
  EXPECT_EQ(read.info.unix_ns, wrote.info.unix_ns);
  EXPECT_EQ(read.complete, wrote.complete);
  EXPECT_EQ(read.lost, wrote.lost);
  ASSERT_EQ(read.records.size(), wrote.records.size());
  for (std::size_t i = 0; i < read.records.size(); ++i) {
    ASSERT_EQ(read.records[i], wrote.records[i]) << "record " << i;
    ASSERT_EQ(read.name(read.records[i].name), wrote.name(wrote.records[i].name)) << i;
    ASSERT_EQ(read.name(read.records[i].site), wrote.name(wrote.records[i].site)) << i;
  }
}

TEST(Perfetto, RandomRecordsOfEveryKindComeBackAsTheyWere) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<Process> wrote = random_processes(seed, 500);
    const Timeline read = read_perfetto_bytes(written(wrote), "memory");
    ASSERT_EQ(read.processes.size(), wrote.size());
    for (std::size_t i = 0; i < wrote.size(); ++i) expect_equal(read.processes[i], wrote[i]);
  }
}

TEST(Perfetto, ARunComesBackAsItWas) {
  const Process wrote = training_run(7, 2'000);
  const Timeline read = read_perfetto_bytes(written({wrote}), "memory");
  ASSERT_EQ(read.processes.size(), 1U);
  expect_equal(read.processes[0], wrote);
}

TEST(Perfetto, RecordsThatComeLateAreReadInTheirPlace) {
  const Process run = training_run(3, 500);
  StringSink sink;
  const auto writer = timeline::make_perfetto_writer(sink);
  writer->begin(run.info);
  const VectorNames names(run.names);
  const std::span<const TimelineRecord> all(run.records);
  // Slices come a flush later than the events within them.
  std::vector<TimelineRecord> slices;
  for (std::size_t at = 0; at < all.size(); at += 100) {
    std::vector<TimelineRecord> now = std::move(slices);
    slices.clear();
    for (const TimelineRecord& record :
         all.subspan(at, std::min<std::size_t>(100, all.size() - at))) {
      (record.kind == TimelineKind::kExecute ? slices : now).push_back(record);
    }
    writer->write(now, names);
    writer->flush();
  }
  writer->write(slices, names);
  writer->finish(0);
  const Timeline read = read_perfetto_bytes(sink.bytes(), "memory");
  ASSERT_EQ(read.processes.size(), 1U);
  expect_equal(read.processes[0], run);
}

TEST(Perfetto, AFileThatIsCutAnywhereGivesWhatIsWholeInIt) {
  constexpr std::size_t kOperations = WEIR_TEST_SANITIZED != 0 ? 2 : 40;  // its time is quadratic
  Process run = training_run(5, kOperations);
  run.lost = 3;
  const std::string bytes = written({run});
  std::size_t before = 0;
  bool any = false;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    Timeline read;
    try {
      read = read_perfetto_bytes(std::string_view(bytes).substr(0, size), "memory");
    } catch (const UsageError&) {
      ASSERT_FALSE(any) << "of " << size << " bytes";  // only before the process is told
      continue;
    }
    any = true;
    ASSERT_EQ(read.processes.size(), 1U);
    const Process& process = read.processes[0];
    EXPECT_EQ(process.complete, size == bytes.size());
    // At most one record ends at a byte: a truncation loses only the last one.
    ASSERT_LE(process.records.size(), before + 1) << "of " << size << " bytes";
    ASSERT_GE(process.records.size(), before);
    before = process.records.size();
  }
  EXPECT_EQ(before, run.records.size());
}

TEST(Perfetto, WhatIsFlushedCanBeRead) {
  const Process run = training_run(5, 100);
  StringSink sink;
  const auto writer = timeline::make_perfetto_writer(sink);
  writer->begin(run.info);
  const VectorNames names(run.names);
  for (std::size_t at = 0; at < run.records.size(); at += 37) {
    const std::size_t count = std::min<std::size_t>(37, run.records.size() - at);
    writer->write(std::span(run.records).subspan(at, count), names);
    writer->flush();
    const Timeline read = read_perfetto_bytes(sink.bytes(), "memory");
    ASSERT_EQ(read.processes.at(0).records.size(), at + count);
    EXPECT_FALSE(read.processes[0].complete);
  }
}

TEST(Perfetto, AnEventTakesThirtyBytesAtMost) {
  const Process run = training_run(11, 20'000);
  const std::string bytes = written({run});
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
  const std::string bytes = written({training_run(1, 100)});
  EXPECT_EQ(refusal(bytes), "");
  EXPECT_NE(refusal(bytes, {.max_records = 10}).find("10 records"), std::string::npos);
  EXPECT_NE(refusal(bytes, {.max_names = 3}).find("from 1 to 3"), std::string::npos);
  EXPECT_NE(refusal(bytes, {.max_bytes = 100}), "");
  EXPECT_NE(refusal(bytes + bytes, {.max_processes = 1}), "");
  EXPECT_NE(refusal(bytes, {.max_string = 2}), "");
}

TEST(Perfetto, AFileThatClaimsMoreThanItHasEndsInOneLineOrIsCut) {
  const std::string good = written({training_run(1, 10)});
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

TEST(Perfetto, RandomDamageIsReadOrRefused) {
  const std::string good = written({training_run(1, 60)});
  std::mt19937_64 random(99);
  constexpr int kRounds = WEIR_TEST_SANITIZED != 0 ? 300 : 2'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string bad = good;
    for (std::uint64_t i = 0; i < 1 + random() % 4; ++i) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    try {
      (void)read_perfetto_bytes(bad, "memory");
    } catch (const UsageError&) {  // NOLINT(bugprone-empty-catch): one of the two that may be
    }
  }
}

TEST(Perfetto, UnknownFieldsAreSkipped) {
  const std::string good = written({training_run(1, 10)});
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

TEST(Perfetto, AFileIsReadAsItsBytesAre) {
  const Process run = training_run(2, 300);
  const auto path = std::filesystem::temp_directory_path() /
                    ("weir_perfetto_" + std::to_string(::getpid()) + ".pftrace");
  std::ofstream(path, std::ios::binary) << written({run});
  const Timeline read = timeline::read_perfetto(path.string());
  std::filesystem::remove(path);
  ASSERT_EQ(read.processes.size(), 1U);
  expect_equal(read.processes[0], run);
  EXPECT_THROW((void)timeline::read_perfetto(path.string()), UsageError);
}

TEST(Perfetto, OursAreTold) {
  EXPECT_TRUE(
      timeline::looks_like_perfetto(std::string_view(written({training_run(1, 1)})).substr(0, 64)));
  for (const char* other : {"", "[\n{", "\x1F\x8B\x08", "weirlog"}) {
    EXPECT_FALSE(timeline::looks_like_perfetto(other));
  }
}

}  // namespace
}  // namespace weir::testing
