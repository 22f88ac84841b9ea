#include "allocator/base/output_place.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace weir {
namespace {

FileIdentity identity_of(const struct stat& status) {
  return {.device = status.st_dev, .inode = status.st_ino};
}

/// Returns the absolute path without links; empty, with errno set, if no such file exists.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real != nullptr ? real.get() : std::string();
}

/// Under /dev, programs may create files only in /dev/shm.
bool is_of_the_system(std::string_view path) {
  return path.starts_with("/proc/") ||
         (path.starts_with("/dev/") && !path.starts_with("/dev/shm/"));
}

/// Follows links to the name that a new file would get. Returns zero or an errno.
int follow_to_nothing(std::string& path) {
  constexpr int kMostLinks = 40;  // the kernel's limit
  for (int link = 0; link < kMostLinks; ++link) {
    const std::size_t slash = path.rfind('/');
    const std::string folder =
        real_path(slash == std::string::npos ? "." : path.substr(0, slash + 1));
    if (folder.empty()) return errno;
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    path = (folder == "/" ? "" : folder) + "/" + name;
    char target[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length < 0) return errno == ENOENT ? 0 : errno;
    const std::string_view next(target, static_cast<std::size_t>(length));
    path = next.starts_with('/') ? std::string(next) : folder + "/" + std::string(next);
  }
  return ELOOP;
}

}  // namespace

OutputPlace find_output(const std::string& path) {
  OutputPlace place;
  place.path = path;
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) {
    place.identity = identity_of(status);
    place.special = !S_ISREG(status.st_mode);
    if (place.special) return place;
    // Links in /proc may lead to files that have no name.
    place.path = real_path(path);
    if (place.path.empty()) place.error = errno;
  } else {
    place.error = errno == ENOENT ? follow_to_nothing(place.path) : errno;
  }
  if (place.error == 0 && is_of_the_system(place.path)) place.error = EPERM;
  return place;
}

}  // namespace weir
