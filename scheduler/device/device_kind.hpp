#pragma once

/// @file
/// The table of device kinds, and the names of devices. A new kind adds an entry to the table.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "scheduler/device/device.hpp"

namespace weir {

/// What a device is.
enum class DeviceKind : std::uint8_t {
  kCpu,   ///< threads of the host
  kCuda,  ///< a GPU
};

/// One device of this machine.
struct DeviceId {
  DeviceKind kind = DeviceKind::kCpu;  ///< its kind
  int ordinal = 0;                     ///< its number among the devices of its kind
  /// Both must be equal.
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

/// What differs between kinds. The functions take a device's ordinal, and throw UsageError (one
/// line with what to do) if there is no such device.
struct KindOfDevice {
  DeviceKind kind;        ///< the kind
  std::string_view name;  ///< of its first device
  bool numbered;          ///< whether `NAME:N` is device number N
  bool on_host;           ///< whether it computes with the host's threads and memory
  std::string_view help;  ///< its devices' names, for people
  /// Returns the most memory that the device can get.
  Bytes (*most_memory)(int ordinal);
  /// Returns the memory that it gets by default.
  Bytes (*default_memory)(int ordinal);
  /// Returns who has that memory, for people.
  std::string (*owner)(int ordinal);
  /// Opens the device.
  std::unique_ptr<DeviceBackend> (*open)(int ordinal, const DeviceOptions& options);
};

/// Returns every kind, in the order of DeviceKind.
[[nodiscard]] std::span<const KindOfDevice> kinds_of_device() noexcept;
/// Returns the entry of a kind.
[[nodiscard]] const KindOfDevice& kind_of(DeviceId device) noexcept;

/// Returns the device with this name: `cpu`, `cuda` or `cuda:N`. Returns nothing for other names.
[[nodiscard]] std::optional<DeviceId> find_device(std::string_view name) noexcept;
/// The same, but throws UsageError with the names that are allowed.
[[nodiscard]] DeviceId parse_device_id(std::string_view name);
/// Throws UsageError if the device has less memory, or does not exist.
void require_memory(DeviceId device, Bytes memory);
/// Lists the names that open_device accepts, for error messages.
[[nodiscard]] std::string allowed_devices();

}  // namespace weir
