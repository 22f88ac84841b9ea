#include "tools/program/locked_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace weir {
namespace {

/// Returns 0, or errno. `is_named` says whether the open file is still the one of that name.
int lock_open(int descriptor, const std::string& name, LockCall lock, bool& is_named) {
  struct stat opened {};
  struct stat named {};
  if (fstat(descriptor, &opened) != 0) return errno;
  if (!S_ISREG(opened.st_mode)) return EEXIST;
  if (lock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno;
  is_named = lstat(name.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
             named.st_ino == opened.st_ino;
  return 0;
}

}  // namespace

LockedFile open_locked(const std::string& name, LockCall lock) {
  for (;;) {  // another process removed its file between our calls each time that this repeats
    // Without O_NONBLOCK, opening a fifo would block until it has a reader.
    const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int descriptor = open(name.c_str(), flags, 0600);
    if (descriptor < 0) return {.descriptor = -1, .error = errno};
    bool is_named = false;
    const int error = lock_open(descriptor, name, lock, is_named);
    if (error == 0 && is_named) return {.descriptor = descriptor, .error = 0};
    close(descriptor);
    if (error != 0) return {.descriptor = -1, .error = error};
  }
}

}  // namespace weir
