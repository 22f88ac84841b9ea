#pragma once

// Where shared budgets lie: files in the machine's shared memory, one for each owner and name.

#include <string>
#include <string_view>
#include <vector>

#include "allocator/share/share_layout.hpp"

namespace weir {

/// A shared budget's name and owner, and the file that these mean.
struct ShareId {
  std::string name;
  ShareOwner owner;

  /// Returns `/dev/shm/weir-share-1000-NAME`, or `/dev/shm/weir-share-g100-NAME` for a group.
  [[nodiscard]] std::string path() const;
  /// Returns the share that a file name (without folder) means, or one without a name.
  [[nodiscard]] static ShareId of_file(std::string_view file);
};

/// Returns whether this can be a share's name: 1 to 64 letters, digits, `.`, `_`, `-`.
[[nodiscard]] bool is_share_name(std::string_view name) noexcept;

/// Returns the shares on this machine that this process may look into, by name.
[[nodiscard]] std::vector<ShareId> shares_here();

}  // namespace weir
