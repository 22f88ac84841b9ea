#pragma once

// Writes and reads gzip.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

struct gzFile_s;

namespace weir::timeline {

/// Compresses what is appended, as one gzip member, because viewers open no others. The gzip is
/// complete after `finish`.
class GzipSink final : public ByteSink {
 public:
  /// `out` must outlive this. Throws Error if memory is short.
  explicit GzipSink(ByteSink& out);
  ~GzipSink() override;
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;

  void append(std::string_view bytes) noexcept override;
  /// Call once, last.
  void finish() noexcept;

 private:
  struct State;
  void deflate_all(std::string_view bytes, int flush) noexcept;

  ByteSink& out_;
  std::unique_ptr<State> state_;
};

}  // namespace weir::timeline

namespace weir::timeline::chrome {

/// Reads a file byte by byte, and unpacks gzip. Implements RapidJSON's stream interface.
class Input {
 public:
  /// Throws UsageError if `path` is not a regular file or cannot be read.
  Input(const std::string& path, const ReadLimits& limits);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // RapidJSON's names for an input stream. Throw UsageError if the file is corrupt, or if a text in
  // it does not end.
  using Ch = char;  // NOLINT(readability-identifier-naming)
  /// Returns the next byte; zero at the end.
  [[nodiscard]] char Peek() {  // NOLINT(readability-identifier-naming)
    if (next_ == end_ && !more()) return '\0';
    return *next_;
  }
  char Take() {  // NOLINT(readability-identifier-naming)
    const char c = Peek();
    if (next_ != end_) ++next_;
    return c;
  }
  [[nodiscard]] std::size_t Tell() const {  // NOLINT(readability-identifier-naming)
    return static_cast<std::size_t>(before_) + static_cast<std::size_t>(next_ - piece_.data());
  }
  // For output streams; never called.
  char* PutBegin() { return nullptr; }     // NOLINT(readability-identifier-naming)
  void Put(char) {}                        // NOLINT(readability-identifier-naming)
  void Flush() {}                          // NOLINT(readability-identifier-naming)
  std::size_t PutEnd(char*) { return 0; }  // NOLINT(readability-identifier-naming)

  /// Notes that everything up to here was parsed completely.
  void mark() noexcept { marked_ = Tell(); }
  [[nodiscard]] bool at_end() { return next_ == end_ && !more(); }
  /// The gzip is truncated; known at the end.
  [[nodiscard]] bool cut() const noexcept { return cut_; }

 private:
  /// Reads the next piece. Returns false at the end.
  bool more();

  const std::string path_;
  const ReadLimits limits_;
  gzFile_s* file_ = nullptr;
  std::vector<char> piece_;
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  std::uint64_t before_ = 0;  ///< bytes before `piece_`
  std::size_t marked_ = 0;
  bool ended_ = false;
  bool cut_ = false;
};

}  // namespace weir::timeline::chrome
