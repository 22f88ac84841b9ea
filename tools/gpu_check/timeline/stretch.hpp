#pragma once

// What the check of timelines has a device do, in stretches that are each known exactly.

#include <cstdint>
#include <string>

namespace weir::gpu_check {

/// What all operations of a stretch are.
enum class StretchKind : std::uint8_t { kKernels, kToDevice, kFromDevice, kOnDevice };

/// Operations of one kind that ran one after the other on one stream, with nothing beside them. The
/// host waited before the first and after the last.
struct Stretch {
  std::string name;
  StretchKind kind = StretchKind::kKernels;
  std::uint64_t operations = 0;  ///< that the device ran
  std::uint32_t batch = 0;       ///< for which they were launched; another one for each stretch
  double event_ms = 0;           ///< between the CUDA events around all of them
  /// Its operations are long beside the gaps between them, so that their sum is that time.
  bool is_timed = false;
  std::uint64_t begin_ns = 0;  ///< of the steady clock, before the first was launched
  std::uint64_t end_ns = 0;    ///< of the same, when the host knew that the last had ended
};

}  // namespace weir::gpu_check
