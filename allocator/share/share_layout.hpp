#pragma once

// The bytes of a shared budget's file, and what they say. Pure: the fuzzer reads any bytes here.
// docs/share.md shows the layout.
//
// Any process that may open the file may write anything. So a reader checks every number, and what
// is no slot of ours is worth nothing: it gives nobody memory and takes none away.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/share/share_policy.hpp"

namespace weir {

inline constexpr std::size_t kShareSlots = 64;  ///< processes that can share one budget
inline constexpr std::uint32_t kShareVersion = 1;
inline constexpr std::array<char, 8> kShareMagic{'w', 'e', 'i', 'r', 's', 'h', 'r', '\n'};
/// The largest budget; sums of all slots stay within 64 bits.
inline constexpr Bytes kMostShared{std::uint64_t{1} << 56U};

/// Who may share: the processes of one user, or of one group.
struct ShareOwner {
  std::uint32_t id = 0;  ///< of the user, or of the group
  bool is_group = false;

  friend bool operator==(const ShareOwner&, const ShareOwner&) = default;
};

/// The file's first bytes. Written once, when the file has no name yet, and again by a process that
/// finds nobody attached.
struct ShareHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t size = 0;  ///< of the file
  std::uint32_t owner = 0;
  std::uint32_t owner_is_group = 0;
  std::uint64_t budget = 0;
  std::uint64_t check = 0;  ///< check_of the rest
};

/// A slot. It counts only while its process holds the slot's lock.
struct ShareRecord {
  std::uint64_t floor = 0;
  std::uint64_t lease = 0;
  std::uint64_t wanted = 0;
  std::uint64_t pid = 0;    ///< for people
  std::uint64_t check = 0;  ///< check_of the rest
};

/// The whole file.
struct ShareLayout {
  ShareHeader header{};
  std::array<ShareRecord, kShareSlots> slots{};
};
static_assert(sizeof(ShareLayout) == 40 + kShareSlots * 40);

/// Returns the check of a header or record, over everything before it. It finds torn, old and
/// random bytes; it is no seal against a process that computes it, too.
[[nodiscard]] std::uint64_t check_of(const ShareHeader& header) noexcept;
[[nodiscard]] std::uint64_t check_of(const ShareRecord& record) noexcept;

[[nodiscard]] ShareHeader header_of(const ShareOwner& owner, Bytes budget) noexcept;
[[nodiscard]] ShareRecord record_of(const ShareSlot& slot, std::uint64_t pid) noexcept;

/// Returns what is wrong with a file of `file_size` bytes, of which `read` were read, for `owner`;
/// empty if nothing is. In the words of `its layout is version 3, and this program's is 1`.
[[nodiscard]] std::string fault_of(const ShareHeader& header, std::uint64_t read,
                                   std::uint64_t file_size, const ShareOwner& owner);

/// Returns what the record says, or nothing if no process of ours wrote that for this budget.
[[nodiscard]] std::optional<ShareSlot> slot_of(const ShareRecord& record, Bytes budget) noexcept;

// Where shared budgets lie: files in the machine's shared memory, one for each owner and name.

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
