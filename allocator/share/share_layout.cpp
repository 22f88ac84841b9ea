#include "allocator/share/share_layout.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
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

namespace {

constexpr std::string_view kFolder = "/dev/shm";
constexpr std::string_view kPrefix = "weir-share-";

}  // namespace

bool is_share_name(std::string_view name) noexcept {
  constexpr std::size_t kLongest = 64;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, allowed);
}

std::string ShareId::path() const {
  return std::string(kFolder) + "/" + std::string(kPrefix) + (owner.is_group ? "g" : "") +
         std::to_string(owner.id) + "-" + name;
}

ShareId ShareId::of_file(std::string_view file) {
  if (!file.starts_with(kPrefix)) return {};
  file.remove_prefix(kPrefix.size());
  ShareId id;
  id.owner.is_group = file.starts_with('g');
  if (id.owner.is_group) file.remove_prefix(1);
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), id.owner.id);
  if (error != std::errc{} || end == file.data() + file.size() || *end != '-') return {};
  file.remove_prefix(static_cast<std::size_t>(end - file.data()) + 1);
  if (is_share_name(file)) id.name = file;
  return id;
}

std::vector<ShareId> shares_here() {
  std::vector<ShareId> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(kFolder, error), end; !error && at != end;
       at.increment(error)) {
    ShareId id = ShareId::of_file(at->path().filename().string());
    if (!id.name.empty() && access(id.path().c_str(), R_OK) == 0) found.push_back(std::move(id));
  }
  std::ranges::sort(found, {}, [](const ShareId& id) { return id.path(); });
  return found;
}

}  // namespace weir
