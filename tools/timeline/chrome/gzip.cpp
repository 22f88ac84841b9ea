#include "tools/timeline/chrome/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

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
