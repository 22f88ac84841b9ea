#include "tools/timeline/chrome/gzip.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"

namespace weir::timeline {

struct GzipSink::State {
  z_stream stream{};
  std::array<char, 1U << 16U> piece{};
};

GzipSink::GzipSink(ByteSink& out) : out_(out), state_(std::make_unique<State>()) {
  // 15 bits of window, plus 16 for a gzip header (zlib.h, deflateInit2). Level 4 takes half the
  // time of level 6 for a tenth more bytes.
  constexpr int kLevel = 4;
  constexpr int kMemory = 8;
  if (deflateInit2(&state_->stream, kLevel, Z_DEFLATED, 15 + 16, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw Error("zlib has no memory");
  }
}

GzipSink::~GzipSink() { (void)deflateEnd(&state_->stream); }

void GzipSink::append(std::string_view bytes) noexcept {
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kMost, bytes.size()))) {
    deflate_all(bytes.substr(0, kMost), Z_NO_FLUSH);
  }
}

void GzipSink::finish() noexcept { deflate_all({}, Z_FINISH); }

void GzipSink::deflate_all(std::string_view bytes, int flush) noexcept {
  z_stream& stream = state_->stream;
  // zlib only reads from next_in.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(state_->piece.data());
    stream.avail_out = static_cast<uInt>(state_->piece.size());
    (void)deflate(&stream, flush);
    out_.append({state_->piece.data(), state_->piece.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

}  // namespace weir::timeline

namespace weir::timeline::chrome {

namespace {

constexpr std::size_t kPiece = 1U << 18U;

[[noreturn]] void refuse_reading(const std::string& path, int error) {
  throw UsageError(path + ": cannot be read (" + std::generic_category().message(error) + ")");
}

/// Opens a regular file. Without O_NONBLOCK, opening a fifo would block.
int open_regular(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) refuse_reading(path, errno);
  struct stat status {};
  const int error = fstat(file, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (error == 0 && S_ISREG(status.st_mode)) return file;
  close(file);
  if (error != 0) refuse_reading(path, error);
  throw UsageError(path + ": not a regular file; a timeline is read from a regular file");
}

}  // namespace

Input::Input(const std::string& path, const ReadLimits& limits)
    : path_(path), limits_(limits), piece_(kPiece) {
  next_ = end_ = piece_.data();
  const int file = open_regular(path);
  file_ = gzdopen(file, "rb");
  if (file_ == nullptr) {
    close(file);
    throw Error("zlib has no memory");
  }
  (void)gzbuffer(file_, kPiece);
}

Input::~Input() { (void)gzclose_r(file_); }

bool Input::more() {
  if (ended_) return false;
  before_ += static_cast<std::uint64_t>(end_ - piece_.data());
  next_ = end_ = piece_.data();
  if (before_ > limits_.max_bytes) {
    throw UsageError(path_ + ": is larger than " + format_bytes(Bytes{limits_.max_bytes}) +
                     ", unpacked");
  }
  if (before_ - marked_ > limits_.max_string + kPiece) {
    throw UsageError(path_ + ": after byte " + std::to_string(marked_) +
                     " comes a text longer than " + format_bytes(Bytes{limits_.max_string}));
  }
  const int got = gzread(file_, piece_.data(), kPiece);
  int code = Z_OK;
  const char* const message = gzerror(file_, &code);
  if (got < 0) {
    if (code == Z_ERRNO) refuse_reading(path_, errno);
    throw UsageError(path_ + ": after byte " + std::to_string(before_) + " the gzip is broken (" +
                     message + ")");
  }
  end_ = piece_.data() + got;
  ended_ = got == 0;
  cut_ = ended_ && code == Z_BUF_ERROR;
  return !ended_;
}

}  // namespace weir::timeline::chrome
