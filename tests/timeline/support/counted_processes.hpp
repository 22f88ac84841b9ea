#pragma once

// Processes of a few records whose counters are known.

#include <array>
#include <cstdint>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::testing {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
/// Records are a millisecond apart: counters have one sample in 100 us.
inline constexpr std::uint64_t kStep = 1'000'000;

/// Its libraries took memory from the driver, as a profiler reports it. After 1 ms and each one
/// that follows the device memory of libnccl and libcublas is, in MiB: 1+0, 1+8, 1+8 (64 KiB of
/// pinned memory came), 1+12, 1+4, 0+4, 0+4 (a free of nobody's block). The driver's pool has used
/// 0, 2 and 2 MiB of 32, 32 and 4 after 1, 3 and 5 ms.
[[nodiscard]] inline Process driver_memory_process() {
  enum Name : std::uint8_t { kNone, kNccl, kCublas };
  Process process;
  process.names = {"", "libnccl.so.2", "libcublas.so.13"};
  process.complete = true;
  const auto add = [&](std::uint64_t step, TimelineRecord record) {
    record.begin = record.end = step * kStep;
    record.device = 1;
    process.records.push_back(record);
  };
  const auto memory = [&](std::uint64_t step, TimelineKind kind, TimelineMemory of, Name library,
                          std::uint64_t address, std::uint64_t bytes) {
    add(step, {.bytes = bytes,
               .sequence = address,
               .name = library,
               .kind = kind,
               .detail = static_cast<std::uint8_t>(of)});
  };
  const auto pool = [&](std::uint64_t step, std::uint8_t what, std::uint64_t used,
                        std::uint64_t reserved) {
    add(step, {.bytes = used,
               .requested = reserved,
               .sequence = 0xA,
               .kind = TimelineKind::kDriverPool,
               .detail = what});
  };
  constexpr auto kGives = TimelineKind::kDriverAlloc;
  constexpr auto kTakes = TimelineKind::kDriverFree;
  constexpr auto kDevice = TimelineMemory::kDevice;
  memory(1, kGives, kDevice, kNccl, 0x1000, kMiB);
  pool(1, 1, 0, 32 * kMiB);
  memory(2, kGives, kDevice, kCublas, 0x2000, 8 * kMiB);
  memory(3, kGives, TimelineMemory::kPinned, kNccl, 0x3000, kMiB / 16);
  pool(3, 3, 2 * kMiB, 32 * kMiB);
  memory(4, kGives, kDevice, kCublas, 0x4000, 4 * kMiB);
  memory(5, kTakes, kDevice, kCublas, 0x2000, 8 * kMiB);
  pool(5, 3, 2 * kMiB, 4 * kMiB);
  memory(6, kTakes, kDevice, kNccl, 0x1000, kMiB);
  memory(7, kTakes, kDevice, kNone, 0x9000, kMiB);
  return process;
}

/// Nanoseconds. Zero: there was no target, or the file is from before targets were recorded.
inline constexpr std::array<std::uint64_t, 5> kTargets{0, 2'000'000, 5'000'000, 0, 4'500'000};

/// Its batch i, from 1, is admitted after i ms under the i-th target.
[[nodiscard]] inline Process target_process() {
  Process process;
  process.names = {"", "train"};
  process.complete = true;
  std::uint32_t batch = 0;
  for (const std::uint64_t target : kTargets) {
    ++batch;
    process.records.push_back({.begin = batch * kStep,
                               .end = batch * kStep,
                               .requested = target,
                               .batch = batch,
                               .name = 1,
                               .kind = TimelineKind::kAdmit});
  }
  return process;
}

/// The same without targets.
[[nodiscard]] inline Process process_without_targets() {
  Process process = target_process();
  for (TimelineRecord& record : process.records) record.requested = 0;
  return process;
}

}  // namespace weir::timeline::testing
