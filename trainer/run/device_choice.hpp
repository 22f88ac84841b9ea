#pragma once

// Which device a program runs on, and how much memory that has. Thread-safe.

#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/pool_options.hpp"

namespace weir {

/// `cpu`, `cuda`, `cuda:N` or `auto`. UsageError otherwise, naming `name`.
[[nodiscard]] std::string parse_device(std::string_view name, std::string_view text);

/// A device that open_device knows: `auto` becomes `cuda` where a GPU answers and `cpu` otherwise,
/// and the source says in a few words why. UsageError of one line, with what to do, for a GPU
/// that is not there.
[[nodiscard]] Setting<std::string> choose_device(const Setting<std::string>& asked);

/// The most memory that the device can be given: the machine's, or the GPU's. UsageError for a GPU
/// that is not there.
[[nodiscard]] Bytes most_device_memory(std::string_view device);
/// What it is given unless told: half of the machine's, or all of the GPU's. UsageError likewise.
[[nodiscard]] Bytes default_device_memory(std::string_view device);

/// Which of MXNet's variables are for it.
[[nodiscard]] MxnetContext mxnet_context(std::string_view device) noexcept;

}  // namespace weir
