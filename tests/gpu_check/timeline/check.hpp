#pragma once

// What is wrong with a timeline of work that is known exactly.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::gpu_check {

/// Operations of one kind that ran one after the other on one stream, alone on the device. The host
/// waited before the first and after the last.
struct Stretch {
  std::string name;
  TimelineKind kind = TimelineKind::kKernel;         ///< or kCopy
  TimelineCopy direction = TimelineCopy::kToDevice;  ///< of copies
  std::uint64_t operations = 0;                      ///< number run by the device
  std::uint32_t batch = 0;  ///< the batch that launched them; unique to the stretch
  double event_ms = 0;      ///< between CUDA events around all of them
  /// Its operations are long compared to the gaps, so their sum nearly equals `event_ms`.
  bool is_timed = false;
  std::uint64_t begin_ns = 0;  ///< steady clock before the first launch
  std::uint64_t end_ns = 0;    ///< steady clock when the host knew of the last end
};

/// One line each; empty if all is well.
struct Faults {
  std::string counts;  ///< of kernels and copies
  std::string times;   ///< that differ from CUDA events
  std::string places;  ///< batches, order, and the host's times around them
};

inline constexpr double kMostOff = 0.02;  ///< of CUDA events' time
/// How far an operation may lie outside the host's times, and how much two of one stream may seem
/// to overlap: a device's clock moves in steps.
inline constexpr std::uint64_t kMostOutsideNs = 1'000'000;
inline constexpr std::uint64_t kOverlapNs = 1000;

/// Pure. Finds a stretch's operations by their batch.
[[nodiscard]] inline Faults faults_of(const timeline::Process& process,
                                      const std::vector<Stretch>& launched) {
  Faults faults;
  std::uint64_t left = 0;  // kernels and copies that belong to no stretch
  for (const TimelineRecord& record : process.records) {
    left += record.kind == TimelineKind::kKernel || record.kind == TimelineKind::kCopy ? 1 : 0;
  }
  const std::uint64_t zero = process.info.monotonic_ns;
  for (const Stretch& stretch : launched) {
    std::uint64_t recorded = 0;
    std::uint64_t last = 0;
    std::uint64_t last_id = 0;
    double sum_ms = 0;
    for (const TimelineRecord& record : process.records) {
      const bool fits = record.kind != TimelineKind::kCopy ||
                        static_cast<TimelineCopy>(record.detail) == stretch.direction;
      if (record.kind != stretch.kind || record.batch != stretch.batch || !fits) continue;
      ++recorded;
      if (record.begin + kOverlapNs < last || record.id < last_id) {
        faults.places += stretch.name + " is not in order\n";
      }
      if (zero + record.begin + kMostOutsideNs < stretch.begin_ns ||
          zero + record.end > stretch.end_ns + kMostOutsideNs) {
        faults.places += stretch.name + " is outside the host's times\n";
      }
      last = std::max(last, record.end);
      last_id = record.id;
      sum_ms += static_cast<double>(record.end - record.begin) / 1e6;
    }
    left -= recorded;
    if (recorded != stretch.operations) {
      faults.counts += stretch.name + ": " + std::to_string(recorded) + " of " +
                       std::to_string(stretch.operations) + "\n";
    }
    if (stretch.is_timed && !(std::abs(sum_ms - stretch.event_ms) <= kMostOff * stretch.event_ms)) {
      faults.times += stretch.name + ": " + std::to_string(sum_ms) + " of " +
                      std::to_string(stretch.event_ms) + " ms\n";
    }
  }
  if (left != 0) faults.counts += std::to_string(left) + " have no batch of theirs\n";
  if (process.lost != 0) faults.counts += std::to_string(process.lost) + " events lost\n";
  if (!process.complete) faults.counts += "the recording has no end\n";
  return faults;
}

}  // namespace weir::gpu_check
