#include "tools/replay/source.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "allocator/error.hpp"

namespace weir::replay {
namespace {

constexpr std::string_view kMagic = "\x1f\x8b";

/// zlib's state for one file, of which a gzip may hold several streams one after the other.
class Inflater {
 public:
  Inflater(const std::string& name, const std::string& packed) : name_(name), packed_(packed) {
    // 15 bits of window, and 16 for a gzip header (zlib.h, inflateInit2).
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw Error("zlib has no memory");
  }
  ~Inflater() { (void)inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Appends all there is to `bytes`. False: the last stream does not end.
  [[nodiscard]] bool unpack_to(std::string& bytes, Bytes most) {
    while (true) {
      const int code = step(bytes);
      if (bytes.size() > most.count) refuse("unpacks to more than " + format_bytes(most));
      if (code == Z_STREAM_END) {
        if (at_end()) return true;
        (void)inflateReset(&stream_);
      } else if (code == Z_BUF_ERROR) {
        return false;  // nothing came of what is left, and there is no more
      } else if (code != Z_OK) {
        refuse(stream_.msg != nullptr ? stream_.msg : "what follows is not gzip's");
      }
    }
  }

 private:
  int step(std::string& bytes) {
    if (stream_.avail_in == 0) {
      const std::size_t left = packed_.size() - taken_;
      const std::size_t piece = std::min<std::size_t>(left, std::numeric_limits<uInt>::max());
      // zlib reads there only; its pointer is to const from 1.2.5.2 on, with ZLIB_CONST.
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
  /// After a stream: zeros may fill up the file (gzip's manual, "zero padding").
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
    source.cut = "the gzip ends early";
  }
  return source;
}

Source read_source(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  for (std::array<char, 65536> piece{};
       file.read(piece.data(), piece.size()) || file.gcount() > 0;) {
    bytes.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    throw UsageError(path + ": cannot be read (" + std::generic_category().message(errno) + ")");
  }
  return unpack(path, std::move(bytes));
}

}  // namespace weir::replay
