#include "tools/preload/torch/plug_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace weir::preload {
namespace {

constexpr std::string_view kBegin = "libweir_torch_";
constexpr std::string_view kOlderAbi = "_cxx03";
constexpr std::string_view kEnd = ".so";

/// A file, open for reading during its lifetime. A pipe does not keep it waiting.
class File {
 public:
  explicit File(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), error_(errno) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] std::string error() const { return std::generic_category().message(error_); }
  [[nodiscard]] std::optional<struct stat> status() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) return std::nullopt;
    return status;
  }
  /// Returns how many bytes could be read at `offset`.
  [[nodiscard]] std::size_t read_at(void* data, std::size_t size, std::uint64_t offset) const {
    const ssize_t count = pread(descriptor_, data, size, static_cast<off_t>(offset));
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }

 private:
  const int descriptor_;
  const int error_;
};

/// Whether the file has all bytes that the loader will map.
bool is_whole(const File& file, const Elf64_Ehdr& header, std::uint64_t size) {
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr)) return false;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    const std::uint64_t at = header.e_phoff + i * sizeof part;
    if (file.read_at(&part, sizeof part, at) != sizeof part) return false;
    if (part.p_type != PT_LOAD) continue;
    if (part.p_offset > size || part.p_filesz > size - part.p_offset) return false;
  }
  return true;
}

bool is_for_this_machine(const Elf64_Ehdr& header) {
  return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
         header.e_machine == EM_X86_64 && header.e_type == ET_DYN;
}

/// Returns the numbers of a plug's name; nothing for another name.
std::optional<std::pair<int, int>> version_in(std::string_view name) {
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  if (name.ends_with(kOlderAbi)) name.remove_suffix(kOlderAbi.size());
  std::pair<int, int> version;
  const char* const end = name.data() + name.size();
  const auto major = std::from_chars(name.data(), end, version.first);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  if (minor.ec != std::errc{} || minor.ptr != end) return std::nullopt;
  return version;
}

}  // namespace

std::string plug_name(const TorchVersion& version, CxxAbi abi) {
  std::string name(kBegin);
  name.append(major_minor(version)).append(abi == CxxAbi::kCxx03 ? kOlderAbi : "").append(kEnd);
  return name;
}

std::vector<std::string> versions_of_plugs_in(const std::string& folder) {
  std::set<std::pair<int, int>> found;
  std::error_code error;
  std::filesystem::directory_iterator each(folder, error);
  for (const std::filesystem::directory_iterator end; !error && each != end;
       each.increment(error)) {
    if (const auto version = version_in(each->path().filename().string())) {
      found.insert(*version);
    }
  }
  std::vector<std::string> versions;
  versions.reserve(found.size());
  for (const auto& [major, minor] : found) {
    versions.push_back(std::to_string(major) + "." + std::to_string(minor));
  }
  return versions;
}

std::optional<std::string> why_unfit(const std::string& path) {
  const File file(path);
  if (!file.is_open()) return "it cannot be read (" + file.error() + ")";
  const auto status = file.status();
  if (!status) return "it cannot be read";
  if (S_ISDIR(status->st_mode)) return "it is a folder";
  if (!S_ISREG(status->st_mode)) return "it is not a file";
  Elf64_Ehdr header{};
  const std::size_t size = file.read_at(&header, sizeof header, 0);
  if (size < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "it is not a shared library";
  }
  if (size < sizeof header) return "it is cut off";
  if (!is_for_this_machine(header)) return "it is not a shared library for this machine";
  if (!is_whole(file, header, static_cast<std::uint64_t>(status->st_size))) return "it is cut off";
  return std::nullopt;
}

std::optional<std::string> read_beginning(const std::string& path, std::size_t most) {
  const File file(path);
  if (!file.is_open()) return std::nullopt;
  const auto status = file.status();
  const bool has_size = status && status->st_size > 0;  // files of /proc have none
  if (has_size) most = std::min(most, static_cast<std::size_t>(status->st_size));
  std::string beginning;
  while (beginning.size() < most) {
    const std::size_t at = beginning.size();
    beginning.resize(has_size ? most : std::min(most, at + 4096));
    const std::size_t count = file.read_at(beginning.data() + at, beginning.size() - at, at);
    beginning.resize(at + count);
    if (count == 0) break;
  }
  return beginning;
}

}  // namespace weir::preload
