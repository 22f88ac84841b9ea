#include "allocator/share/share_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace weir {
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
