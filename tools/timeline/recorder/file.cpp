#include "tools/timeline/recorder/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "allocator/base/output_place.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/recorder/settings.hpp"

namespace weir::timeline {
namespace {

constexpr std::string_view kCompressed = ".gz";

constexpr std::size_t kHead = 4096;

std::string text_of(int error) { return std::generic_category().message(error); }

/// Owns and closes a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int file) noexcept : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return file_; }
  [[nodiscard]] int release() noexcept { return std::exchange(file_, -1); }

 private:
  int file_;
};

/// Like ::open, for writing, but never returns 0, 1 or 2. Otherwise, in a program that was started
/// without a standard stream or has closed it, its output would go into the file.
int open_to_write(const std::string& path, int flags) noexcept {
  constexpr mode_t kMode = 0666;
  const int file = ::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, kMode);
  if (file < 0 || file > STDERR_FILENO) return file;
  const int other = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(file);
  errno = error;
  return other;
}

/// Returns zero, or the error.
int write_all(int file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Only one opening of a file can hold its lock. The lock is released with the opening's last
/// descriptor, however its process ends.
bool lock_file(int file) noexcept {
  return flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> made{0};
  return path + "." + std::to_string(getpid()) + "-" + std::to_string(++made) + ".new";
}

std::optional<FileIdentity> identity_of(int file) noexcept {
  struct stat status {};
  if (fstat(file, &status) != 0) return std::nullopt;
  return FileIdentity{.device = status.st_dev, .inode = status.st_ino};
}

std::optional<FileIdentity> identity_of(const std::string& path) noexcept {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{.device = status.st_dev, .inode = status.st_ino};
}

std::uint64_t size_of(int file) noexcept {
  struct stat status {};
  return fstat(file, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool is_same_file(int file, const std::string& path) noexcept {
  const auto opened = identity_of(file);
  return opened && opened == identity_of(path);
}

/// The result of an attempt to put a file in its place.
enum class Placed { kYes, kInUse, kAgain };

/// Puts `beside`, which is locked, at `path`. Throws what refuse_here throws.
template <typename Refuse>
Placed put(const std::string& beside, const std::string& path, const Refuse& refuse_here) {
  const Descriptor old(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (old.get() < 0) {
    if (errno != ENOENT) refuse_here(errno);
    // A link, unlike a rename, never replaces a file that another process has just put there.
    if (link(beside.c_str(), path.c_str()) == 0) {
      (void)unlink(beside.c_str());
      return Placed::kYes;
    }
    if (errno == EEXIST) return Placed::kAgain;
    if (rename(beside.c_str(), path.c_str()) != 0)
      refuse_here(errno);  // a file system without
                           // hard links
    return Placed::kYes;
  }
  if (!is_timeline_or_empty(path)) refuse_here(0);
  // Holding the lock of the file that is replaced ensures that only one process replaces it.
  if (!lock_file(old.get())) return Placed::kInUse;
  if (!is_same_file(old.get(), path)) return Placed::kAgain;
  if (rename(beside.c_str(), path.c_str()) != 0) refuse_here(errno);
  return Placed::kYes;
}

std::string with_process(const std::string& path) {
  const std::size_t packed = path.ends_with(kCompressed) ? kCompressed.size() : 0;
  const std::size_t ending = path.substr(0, path.size() - packed).rfind('.');
  return path.substr(0, ending) + "." + std::to_string(getpid()) + path.substr(ending);
}

/// Compresses `from` into one member, because readers accept no more. Returns zero, or the error.
int compress(const std::string& from, const std::string& to, const std::function<void()>& advance) {
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  Descriptor target(open_to_write(to, O_CREAT | O_EXCL));
  if (source.get() < 0 || target.get() < 0) return errno;
  const gzFile file = gzdopen(target.release(), "wb4");
  if (file == nullptr) return ENOMEM;
  int error = 0;
  static constexpr std::size_t kPiece = std::size_t{1} << 18U;
  const auto piece = std::make_unique<std::array<char, kPiece>>();
  for (ssize_t got = 0; error == 0; advance()) {
    got = ::read(source.get(), piece->data(), piece->size());
    if (got == 0) break;
    if (got < 0) {
      error = errno == EINTR ? 0 : errno;
    } else if (gzwrite(file, piece->data(), static_cast<unsigned>(got)) != got) {
      error = errno != 0 ? errno : ENOSPC;
    }
  }
  if (gzclose(file) != Z_OK && error == 0) error = errno != 0 ? errno : ENOSPC;
  return error;
}

}  // namespace

bool is_timeline_or_empty(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (status.st_size == 0) return true;
  const gzFile file = gzopen(path.c_str(), "rbe");  // also reads uncompressed files
  if (file == nullptr) return false;
  std::array<char, kHead> head{};
  const int got = gzread(file, head.data(), head.size());
  (void)gzclose(file);
  const std::string_view text(head.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return std::ranges::any_of(file_formats(), [text](const FileFormat& format) {
    return format.recognises_ours != nullptr && format.recognises_ours(text);
  });
}

std::unique_ptr<TimelineFile> TimelineFile::open(const std::string& source,
                                                 const std::string& path) {
  const auto refuse_here = [&](int error) {
    refuse(source, path,
           error == 0 ? "a new file, or a timeline that it replaces"
                      : "a regular file that can be written (" + text_of(error) + ")");
  };
  const auto check = [&](const OutputPlace& place) {
    if (place.error != 0) refuse_here(place.error);
    if (place.special || (place.identity && !is_timeline_or_empty(place.path))) refuse_here(0);
  };
  const NamedFormat format = parse_format(source, path);
  const OutputPlace named = find_output(path);
  check(named);
  // Written uncompressed and compressed at the end, because a partly compressed file opens nowhere.
  // The final name is used from the start, so that the file can be found if the program is killed,
  // and replaces no other file.
  std::string place = named.path;

  const std::string beside = name_beside(place);
  Descriptor file(open_to_write(beside, O_CREAT | O_EXCL | O_APPEND));
  if (file.get() < 0) refuse_here(errno);
  (void)lock_file(file.get());
  std::string note;
  try {
    constexpr int kAttempts = 100;
    Placed placed = Placed::kAgain;
    for (int i = 0; i < kAttempts && placed != Placed::kYes; ++i) {
      placed = put(beside, place, refuse_here);
      if (placed != Placed::kInUse) continue;
      if (!note.empty()) refuse_here(EBUSY);
      note = "another process writes to '" + path + "'";
      place = with_process(place);
    }
    if (placed != Placed::kYes) refuse_here(EBUSY);
  } catch (...) {
    (void)unlink(beside.c_str());
    throw;
  }
  std::unique_ptr<TimelineFile> opened(new TimelineFile(file.release(), place, format));
  if (!note.empty()) opened->note_ = note + ": this one writes to '" + place + "'";
  return opened;
}

TimelineFile::TimelineFile(int file, std::string path, NamedFormat format)
    : file_(file), identity_(identity_of(file)), path_(std::move(path)), format_(format) {}

TimelineFile::~TimelineFile() { close(); }

void TimelineFile::append(std::string_view bytes) noexcept {
  if (file_ < 0 || !failure_.empty()) return;
  const bool is_there = find_again();
  const bool is_whole = is_there && size_of(file_) >= size_;
  const int error = is_whole ? write_all(file_, bytes) : EBADF;
  if (error == 0) {
    size_ += bytes.size();
    return;
  }
  if (is_whole) (void)!ftruncate(file_, static_cast<off_t>(size_));  // leave no partial event
  try {
    failure_ = is_there && !is_whole ? "the file was truncated by another program" : text_of(error);
  } catch (const std::bad_alloc&) {
    failure_ = "no room";  // short enough to need no allocation
  }
}

void TimelineFile::complete(const std::function<void()>& advance) {
  if (file_ < 0 || !failure_.empty()) return;
  // Readers of the last line look for it there.
  const auto named = identity_of(path_);
  if (!named || named != identity_) {
    failure_ = named ? "another file has taken its name" : text_of(errno);
    return;
  }
  if (!format_.packed()) return;
  const std::string beside = name_beside(path_);
  int error = compress(path_, beside, advance);
  if (error == 0 && rename(beside.c_str(), path_.c_str()) != 0) error = errno;
  if (error == 0) return;
  (void)unlink(beside.c_str());
  failure_ = text_of(error);
}

bool TimelineFile::find_again() noexcept {
  if (file_ >= 0 && identity_of(file_) == identity_) return true;
  // Programs may close descriptors that are not theirs, so the number may belong to another file
  // now.
  file_ = open_to_write(path_, O_APPEND | O_NONBLOCK);
  if (file_ >= 0 && identity_of(file_) == identity_ && lock_file(file_)) return true;
  if (file_ >= 0) ::close(std::exchange(file_, -1));
  return false;
}

void TimelineFile::close() noexcept {
  if (file_ >= 0 && identity_of(file_) == identity_) ::close(file_);
  file_ = -1;
}

void TimelineFile::leave_to_parent() noexcept { close(); }

std::string write_whole(const std::string& path, std::string_view bytes) {
  const std::string beside = name_beside(path);
  const Descriptor file(open_to_write(beside, O_CREAT | O_EXCL));
  if (file.get() < 0) return text_of(errno);
  int error = write_all(file.get(), bytes);
  if (error == 0 && rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  (void)unlink(beside.c_str());
  return text_of(error);
}

}  // namespace weir::timeline
