#pragma once

// Compresses bytes into a gzip.

#include <memory>

#include "tools/timeline/model/timeline.hpp"

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
