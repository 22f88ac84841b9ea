#pragma once

#include <atomic>

namespace weir::torch_plug {

/// Set in a forked child, which has its parent's tensors but not its parent's device.
inline std::atomic<bool> forked_child{false};

[[nodiscard]] inline bool is_forked_child() noexcept {
  return forked_child.load(std::memory_order_relaxed);
}

}  // namespace weir::torch_plug
