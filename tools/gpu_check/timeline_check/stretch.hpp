#pragma once

// The work that the check of timelines runs on a device, in stretches whose content is known
// exactly.

#include <cstdint>
#include <string>

namespace weir::gpu_check {

/// The operations of a stretch.
enum class StretchKind : std::uint8_t { kKernels, kToDevice, kFromDevice, kOnDevice };

/// Operations of one kind that ran one after the other on one stream, alone on the device. The host
/// waited before the first and after the last.
struct Stretch {
  std::string name;
  StretchKind kind = StretchKind::kKernels;
  std::uint64_t operations = 0;  ///< number run by the device
  std::uint32_t batch = 0;       ///< the batch that launched them; unique to the stretch
  double event_ms = 0;           ///< between CUDA events around all of them
  /// Its operations are long compared to the gaps, so their sum nearly equals `event_ms`.
  bool is_timed = false;
  std::uint64_t begin_ns = 0;  ///< steady clock before the first launch
  std::uint64_t end_ns = 0;    ///< steady clock when the host knew of the last end
};

}  // namespace weir::gpu_check
