#pragma once

// Random recordings: every kind, every field, and names that try to break a file.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "tools/timeline/chrome/process_builder.hpp"
#include "tools/timeline/chrome/text.hpp"
#include "tools/timeline/model/timeline.hpp"
#include "tools/timeline/model/tracks.hpp"

namespace weir::timeline::testing {

inline const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> kNames{
      "",
      "adam_update",
      "</script><script>alert(1)</script>",
      "quote \" backslash \\ slash / brace } bracket ]",
      "{\"ph\":\"X\"},\n",
      std::string("zero \0 inside", 13),
      "tab\tnewline\ncarriage\rbell\a\x7f",
      "bytes \xff\xfe\x80 of no encoding",
      "surrogate \xed\xa0\x80, long \xc0\xaf, cut \xe2\x82",
      "Grüße, 世界, 🦆",
      "allocate",
      "batch",
      "execute",
      "kernel<float, 4>",
      std::string(600, 'x'),
      "dir/file.cpp:88",
  };
  return kNames;
}

struct RandomOptions {
  std::size_t records = 1000;
  std::uint64_t length = 10'000'000;  ///< nanoseconds
};

/// Times of slices are consistent, everything else is any number. Sorted; sequences are unique.
inline Process random_process(std::mt19937_64& random, const RandomOptions& options = {}) {
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  const auto any = [&random, &below](std::uint64_t most) -> std::uint64_t {
    switch (below(4)) {
      case 0:
        return 0;
      case 1:
        return std::min<std::uint64_t>(most, below(5));
      case 2:
        return most;
      default:
        return most == ~std::uint64_t{0} ? random() : below(most + 1);
    }
  };
  Process process;
  process.names = hostile_names();
  process.complete = below(2) == 0;
  process.lost = below(2) == 0 ? 0 : random();
  process.info = {.pid = static_cast<std::uint32_t>(below(100000)),
                  .rank = std::nullopt,
                  .program = process.names[below(process.names.size())],
                  .host = process.names[below(process.names.size())],
                  .boot = process.names[below(process.names.size())],
                  .monotonic_ns = random(),
                  .unix_ns = random()};
  if (below(2) == 0) process.info.rank = static_cast<std::uint32_t>(below(1000));
  constexpr std::uint64_t kMost16 = 0xFFFF;
  constexpr std::uint64_t kMost32 = 0xFFFFFFFF;
  constexpr std::uint64_t kMost64 = ~std::uint64_t{0};
  for (std::size_t i = 0; i < options.records; ++i) {
    TimelineRecord record;
    record.kind = static_cast<TimelineKind>(below(kTimelineKinds));
    record.begin = below(options.length);
    record.end = record.begin + (is_slice(record.kind) ? below(options.length / 20 + 1) : 0);
    record.id = any(kMost64 / 2);  // of arrows Perfetto reads no greater numbers
    record.bytes = any(kMost64);
    record.requested = any(kMost64);
    record.stream = below(2) == 0 ? below(4) : any(kMost64);
    record.sequence = i + 1;
    record.allocated = any(kMost64 / 4);
    record.awaiting = any(kMost64 / 4);
    record.cached = any(kMost64 / 4);
    record.batch = static_cast<std::uint32_t>(below(8) == 0 ? any(kMost32) : below(6));
    record.name = static_cast<std::uint32_t>(below(process.names.size()));
    record.site = static_cast<std::uint32_t>(below(process.names.size()));
    record.thread = static_cast<std::uint32_t>(below(8) == 0 ? any(kMost32) : below(4));
    record.source = static_cast<std::uint16_t>(below(2) == 0 ? below(3) : any(kMost16));
    record.device = static_cast<std::uint16_t>(below(2) == 0 ? below(3) : any(kMost16));
    record.detail = static_cast<std::uint8_t>(below(2) == 0 ? below(8) : below(256));
    process.records.push_back(record);
  }
  std::sort(process.records.begin(), process.records.end(), comes_before);
  return process;
}

/// A readable record, with its names as texts, so that recordings with other numbers can be
/// compared.
inline std::string shown(const Process& process, const TimelineRecord& r) {
  std::string text(kind_name(r.kind));
  for (const std::uint64_t each :
       {r.begin, r.end, r.id, r.bytes, r.requested, r.stream, r.sequence, r.allocated, r.awaiting,
        r.cached, std::uint64_t{r.batch}, std::uint64_t{r.thread}, std::uint64_t{r.source},
        std::uint64_t{r.device}, std::uint64_t{r.detail}}) {
    text += " " + std::to_string(each);
  }
  return text + " '" + valid_utf8(process.name(r.name)) + "' '" + valid_utf8(process.name(r.site)) +
         "'";
}

inline std::vector<std::string> shown(const Process& process) {
  std::vector<std::string> lines;
  for (const TimelineRecord& record : process.records) lines.push_back(shown(process, record));
  return lines;
}

inline void expect_same(const Process& written, const Process& read) {
  EXPECT_EQ(read.complete, written.complete);
  EXPECT_EQ(read.lost, written.lost);
  EXPECT_EQ(read.info.pid, written.info.pid);
  EXPECT_EQ(read.info.rank, written.info.rank);
  for (const auto text : {&ProcessInfo::program, &ProcessInfo::host, &ProcessInfo::boot}) {
    EXPECT_EQ(valid_utf8(read.info.*text), valid_utf8(written.info.*text));
  }
  EXPECT_EQ(read.info.monotonic_ns, written.info.monotonic_ns);
  EXPECT_EQ(read.info.unix_ns, written.info.unix_ns);
  const std::vector<std::string> want = shown(written);
  const std::vector<std::string> have = shown(read);
  ASSERT_EQ(have.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_EQ(have[i], want[i]) << i;
}

}  // namespace weir::timeline::testing
