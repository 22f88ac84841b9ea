#include "allocator/share/share_layout.hpp"

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace weir {
namespace {

/// FNV-1a over the first `Size` bytes, begun with the version, so that zeros are no record.
template <std::size_t Size, typename Value>
std::uint64_t hash(const Value& value) noexcept {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::array<unsigned char, Size> bytes{};
  std::memcpy(bytes.data(), &value, Size);
  std::uint64_t sum = 14695981039346656037U ^ kShareVersion;
  for (const unsigned char byte : bytes) sum = (sum ^ byte) * 1099511628211U;
  return sum;
}

std::string text_of(const ShareOwner& owner) {
  return (owner.is_group ? "group " : "user ") + std::to_string(owner.id);
}

}  // namespace

std::uint64_t check_of(const ShareHeader& header) noexcept {
  return hash<offsetof(ShareHeader, check)>(header);
}

std::uint64_t check_of(const ShareRecord& record) noexcept {
  return hash<offsetof(ShareRecord, check)>(record);
}

ShareHeader header_of(const ShareOwner& owner, Bytes budget) noexcept {
  ShareHeader header{.magic = kShareMagic,
                     .version = kShareVersion,
                     .size = sizeof(ShareLayout),
                     .owner = owner.id,
                     .owner_is_group = owner.is_group ? 1U : 0U,
                     .budget = budget.count};
  header.check = check_of(header);
  return header;
}

ShareRecord record_of(const ShareSlot& slot, std::uint64_t pid) noexcept {
  ShareRecord record{.floor = slot.floor.count,
                     .lease = slot.lease.count,
                     .wanted = slot.wanted.count,
                     .pid = pid};
  record.check = check_of(record);
  return record;
}

std::string fault_of(const ShareHeader& header, std::uint64_t read, std::uint64_t file_size,
                     const ShareOwner& owner) {
  if (read < sizeof header) return "it is too short for a share";
  if (header.magic != kShareMagic) return "it is no share of Weir";
  if (header.version != kShareVersion) {
    return "its layout is version " + std::to_string(header.version) + ", and this program's is " +
           std::to_string(kShareVersion);
  }
  if (header.size != sizeof(ShareLayout) || file_size != sizeof(ShareLayout)) {
    return "it has " + std::to_string(file_size) + " bytes instead of " +
           std::to_string(sizeof(ShareLayout));
  }
  const ShareOwner its{header.owner, header.owner_is_group != 0};
  if (header.check != check_of(header) || header.owner_is_group > 1 || header.budget == 0 ||
      header.budget > kMostShared.count) {
    return "its header was changed by something other than Weir";
  }
  if (its != owner) return "it is for " + text_of(its) + ", not for " + text_of(owner);
  return {};
}

std::optional<ShareSlot> slot_of(const ShareRecord& record, Bytes budget) noexcept {
  if (record.check != check_of(record)) return std::nullopt;
  const ShareSlot slot{{record.floor}, {record.lease}, {record.wanted}};
  const bool possible = slot.floor.count != 0 && slot.floor <= budget && slot.lease <= budget &&
                        slot.wanted <= budget &&
                        (slot.lease >= slot.floor || slot.lease.count == 0);
  return possible ? std::optional(slot) : std::nullopt;
}

}  // namespace weir
