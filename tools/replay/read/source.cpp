#include "tools/replay/read/source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/log/allocation_log_reader.hpp"

namespace weir::replay {
namespace {

constexpr std::string_view kMagic = "\x1f\x8b";
constexpr std::string_view kStandardInput = "-";

/// Checks line lengths while bytes arrive, so that an endless line is refused before it fills the
/// memory.
class LineLengths {
 public:
  explicit LineLengths(const std::string& name) : name_(name) {}

  /// Throws UsageError if the last line of `bytes` is too long. An allocation log has no lines.
  void check(std::string_view bytes) {
    if (is_allocation_log(bytes)) return;
    const std::size_t newline = bytes.substr(looked_at_).rfind('\n');
    if (newline != std::string_view::npos) line_ = looked_at_ + newline + 1;
    looked_at_ = bytes.size();
    if (bytes.size() - line_ <= kLongestLine.count) return;
    throw UsageError(name_ + ": not a trace: at byte " + std::to_string(line_) +
                     " a line begins that is longer than " + format_bytes(kLongestLine));
  }

 private:
  const std::string& name_;
  std::size_t line_ = 0;       ///< start of the last line
  std::size_t looked_at_ = 0;  ///< end of the bytes searched for newlines
};

/// Owns an open file and closes it. Leaves standard input open.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      // Without O_NONBLOCK, opening a fifo would block until somebody opens it for writing.
      : own_(path != kStandardInput),
        file_(own_ ? open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : STDIN_FILENO) {}
  ~Descriptor() {
    if (own_ && file_ >= 0) close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return file_; }
  /// Returns zero, or the reason why the file cannot be read.
  [[nodiscard]] int fault() const noexcept {
    struct stat status {};
    if (file_ < 0 || fstat(file_, &status) != 0) return errno;
    return S_ISDIR(status.st_mode) ? EISDIR : 0;
  }
  [[nodiscard]] bool may_be_read() const noexcept {
    struct stat status {};
    return !own_ || (fstat(file_, &status) == 0 && S_ISREG(status.st_mode));
  }

 private:
  const bool own_;
  const int file_;
};

[[noreturn]] void refuse_reading(const std::string& name, int error) {
  throw UsageError(name + ": cannot be read (" + std::generic_category().message(error) + ")");
}

/// zlib's state for one file. A gzip file may hold several streams, one after another.
class Inflater {
 public:
  Inflater(const std::string& name, const std::string& packed) : name_(name), packed_(packed) {
    // 15 bits of window, plus 16 for a gzip header (zlib.h, inflateInit2).
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw Error("zlib has no memory");
  }
  ~Inflater() { (void)inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Appends all unpacked bytes to `bytes`. Returns false if the last stream is incomplete.
  [[nodiscard]] bool unpack_to(std::string& bytes, Bytes most) {
    while (true) {
      const int code = step(bytes);
      lines_.check(bytes);
      if (bytes.size() > most.count) refuse("unpacks to more than " + format_bytes(most));
      if (code == Z_STREAM_END) {
        if (at_end()) return true;
        (void)inflateReset(&stream_);
      } else if (code == Z_BUF_ERROR) {
        return false;  // no output and no more input
      } else if (code != Z_OK) {
        refuse(stream_.msg != nullptr ? stream_.msg : "the bytes after it are not gzip");
      }
    }
  }

 private:
  int step(std::string& bytes) {
    if (stream_.avail_in == 0) {
      const std::size_t left = packed_.size() - taken_;
      const std::size_t piece = std::min<std::size_t>(left, std::numeric_limits<uInt>::max());
      // zlib only reads from next_in, but declares it const only from 1.2.5.2 on, with ZLIB_CONST.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + taken_));
      stream_.avail_in = static_cast<uInt>(piece);
      taken_ += piece;
    }
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    bytes.append(piece_.data(), piece_.size() - stream_.avail_out);
    return code;
  }
  /// Zeros may follow the last stream (gzip's manual, "zero padding").
  [[nodiscard]] bool at_end() const {
    const std::string_view rest = std::string_view(packed_).substr(offset());
    return std::ranges::all_of(rest, [](char c) { return c == '\0'; });
  }
  [[nodiscard]] std::size_t offset() const { return taken_ - stream_.avail_in; }
  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError(name_ + ": at byte " + std::to_string(offset()) + " of the gzip: " + what);
  }

  const std::string& name_;
  const std::string& packed_;
  LineLengths lines_{name_};
  std::size_t taken_ = 0;
  z_stream stream_{};
  std::array<char, 65536> piece_{};
};

}  // namespace

Source unpack(std::string name, std::string bytes, Bytes most) {
  Source source{.name = std::move(name), .bytes = {}, .cut = {}};
  if (!bytes.starts_with(kMagic)) {
    source.bytes = std::move(bytes);
    return source;
  }
  if (!Inflater(source.name, bytes).unpack_to(source.bytes, most)) {
    source.cut = "the gzip data ends early";
  }
  return source;
}

Bytes most_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  return std::min(gib(8), Bytes{pages * page / 2});
}

Source read_source(const std::string& path) {
  const Descriptor file(path);
  const std::string name = path == kStandardInput ? "standard input" : path;
  if (const int error = file.fault(); error != 0) refuse_reading(name, error);
  if (!file.may_be_read()) {
    throw UsageError(name + ": not a regular file: to read from a pipe, use - as the name");
  }
  const Bytes most = most_bytes();
  std::string bytes;
  LineLengths lines(name);
  for (std::array<char, 65536> piece{};;) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_reading(name, errno);
    if (got == 0) break;
    bytes.append(piece.data(), static_cast<std::size_t>(got));
    if (!bytes.starts_with(kMagic)) lines.check(bytes);
    if (bytes.size() > most.count) {
      throw UsageError(name + ": is larger than " + format_bytes(most));
    }
  }
  return unpack(name, std::move(bytes), most);
}

}  // namespace weir::replay
