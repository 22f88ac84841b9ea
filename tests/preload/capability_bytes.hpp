#pragma once

// File capabilities in the format of the attribute `security.capability`.

#include <linux/capability.h>

#include <cstdint>
#include <string>

namespace weir::testing {

struct CapabilityBytes {
  int revision = VFS_CAP_REVISION_2;
  bool effective = false;
  std::uint64_t permitted = 0;  ///< one bit each
  std::uint64_t inheritable = 0;
};

[[nodiscard]] inline std::string capability_bytes(const CapabilityBytes& what) {
  std::string bytes;
  const auto add = [&](std::uint64_t number) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  };
  add(static_cast<std::uint64_t>(what.revision | (what.effective ? VFS_CAP_FLAGS_EFFECTIVE : 0)));
  for (int word = 0; word < (what.revision == VFS_CAP_REVISION_1 ? 1 : 2); ++word) {
    add(what.permitted >> (32 * word));
    add(what.inheritable >> (32 * word));
  }
  if (what.revision == VFS_CAP_REVISION_3) add(0);  // the namespace's root
  return bytes;
}

}  // namespace weir::testing
