#include "tools/weir/run/privileges.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>

namespace weir::cli {
namespace {

/// Reads 32 bits at `offset`, little-endian.
std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  }
  return number;
}

/// Returns the 32-bit words of each set in a revision; zero if unknown.
std::size_t words_of(std::uint64_t revision, std::size_t size) {
  if (revision == VFS_CAP_REVISION_1 && size == XATTR_CAPS_SZ_1) return VFS_CAP_U32_1;
  if (revision == VFS_CAP_REVISION_2 && size == XATTR_CAPS_SZ_2) return VFS_CAP_U32_2;
  if (revision == VFS_CAP_REVISION_3 && size == XATTR_CAPS_SZ_3) return VFS_CAP_U32_3;
  return 0;
}

FileRights rights_of(const std::string& path, const struct stat& status) {
  FileRights rights{
      .mode = status.st_mode, .owner = status.st_uid, .group = status.st_gid, .capabilities = {}};
  std::array<char, XATTR_CAPS_SZ> bytes{};
  const ssize_t size = getxattr(path.c_str(), "security.capability", bytes.data(), bytes.size());
  if (size > 0) rights.capabilities.assign(bytes.data(), static_cast<std::size_t>(size));
  struct statvfs mounted {};
  rights.ignored = statvfs(path.c_str(), &mounted) == 0 && (mounted.f_flag & ST_NOSUID) != 0;
  return rights;
}

std::uint64_t own_inheritable() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return 0;
  return data[0].inheritable | std::uint64_t{data[1].inheritable} << 32;
}

}  // namespace

bool grants_capabilities(std::string_view attribute, std::uint64_t inheritable) {
  if (attribute.size() < 4) return false;
  const std::uint64_t magic = number_at(attribute, 0);
  const std::size_t words = words_of(magic & VFS_CAP_REVISION_MASK, attribute.size());
  if (words == 0) return false;
  if ((magic & VFS_CAP_FLAGS_EFFECTIVE) != 0) return true;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t permitted = number_at(attribute, 4 + 8 * i);
    const std::uint64_t inherited = number_at(attribute, 8 + 8 * i) & inheritable >> (32 * i);
    if ((permitted | inherited) != 0) return true;
  }
  return false;
}

Secure secure_by(const FileRights& file, const OwnRights& own) {
  if (file.ignored) return Secure::kNo;
  if (!own.no_new_ones &&
      changes_identity(file.mode, file.owner, file.group, own.user, own.group)) {
    return Secure::kIdentity;
  }
  // Root has all capabilities, so the kernel does not start programs securely because of file
  // capabilities.
  const bool root = own.user == 0;
  return !root && grants_capabilities(file.capabilities, own.inheritable) ? Secure::kCapabilities
                                                                          : Secure::kNo;
}

Secure secure_by(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return Secure::kNo;
  return secure_by(rights_of(path, status),
                   {.user = getuid(),
                    .group = getgid(),
                    .inheritable = own_inheritable(),
                    .no_new_ones = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1});
}

}  // namespace weir::cli
