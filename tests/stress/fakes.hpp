#pragma once

// A subject that counts, and makes one mistake on demand.

#include <cstdint>

#include "tools/replay/subject/subject.hpp"

namespace weir::testing {

enum class Wrong : std::uint8_t {
  kNothing,
  kCountsARefusal,     ///< what it refused stays in its accounting
  kRefusesFromThenOn,  ///< a refusal is its last word
  kKeepsHalf,          ///< half of the freed memory stays allocated
  kChangesItsMind,     ///< serves a refused request at the second try
  kCannotBegin,        ///< refuses everything
  kNeverGivesBack,     ///< freed memory serves only requests of the same size or less
};

/// Not thread-safe.
class CountingSubject final : public replay::Subject {
 public:
  CountingSubject(Bytes capacity, Wrong wrong) : capacity_(capacity), wrong_(wrong) {}

  [[nodiscard]] void* allocate(Bytes bytes, StreamId /*stream*/) override {
    const bool fits = bytes <= minus_or_zero(capacity_, allocated_);
    const bool asked_again = wrong_ == Wrong::kChangesItsMind && bytes == refused_;
    const bool serves = (fits || asked_again) &&
                        !(wrong_ == Wrong::kRefusesFromThenOn && refused_.count != 0) &&
                        !(wrong_ == Wrong::kNeverGivesBack && freed_ && bytes > kMostAfterFree);
    if (!serves || wrong_ == Wrong::kCannotBegin) {
      refused_ = bytes;
      if (wrong_ == Wrong::kCountsARefusal) allocated_ += {1};
      return nullptr;
    }
    allocated_ += bytes;
    next_ += bytes.count;
    return reinterpret_cast<void*>(next_);
  }
  void deallocate(void* /*pointer*/, Bytes bytes, StreamId /*stream*/) override {
    allocated_ -= wrong_ == Wrong::kKeepsHalf ? Bytes{bytes.count / 2} : bytes;
    freed_ = refused_.count != 0;
  }
  void record_use(void* /*pointer*/, StreamId /*stream*/) override {}
  [[nodiscard]] replay::Footprint footprint() const override {
    return {.allocated = allocated_, .reserved = capacity_ * 2, .largest_free = {}};
  }

 private:
  static constexpr Bytes kMostAfterFree = kib(128);

  const Bytes capacity_;
  const Wrong wrong_;
  Bytes allocated_;
  Bytes refused_;
  bool freed_ = false;  ///< something was freed after a refusal
  std::uint64_t next_ = std::uint64_t{1} << 40U;
};

}  // namespace weir::testing
