#pragma once

// Block sizes for requests, by kind of pool. Pure functions. Formulas, defaults and ranges of
// `naive` and `round` are those of MXNet's GPU pools (src/storage/pooled_storage_manager.h,
// RoundHelper and bucketing strategies).

#include <bit>
#include <cstdint>
#include <optional>

#include "allocator/base/bytes.hpp"

namespace weir {

/// Rounds `size` up to a multiple of `unit` (> 0); nullopt beyond 2^63.
[[nodiscard]] constexpr std::optional<Bytes> round_up(Bytes size, Bytes unit) noexcept {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63U;
  if (size.count > kLimit || unit.count > kLimit) return std::nullopt;
  const std::uint64_t rounded = (size.count + unit.count - 1) / unit.count * unit.count;
  if (rounded > kLimit) return std::nullopt;
  return Bytes{rounded};
}

/// `naive`: rounds up to `page`; a result over `large`, up to `large`.
[[nodiscard]] constexpr std::optional<Bytes> naive_block(Bytes size, Bytes page,
                                                         Bytes large) noexcept {
  const auto paged = round_up(size, page);
  return paged && *paged > large ? round_up(*paged, large) : paged;
}

/// `round`: a power of two from `page` (a power of two) to 2^cutoff, above it a multiple of
/// 2^cutoff. Without a table, no request is too large.
[[nodiscard]] constexpr std::optional<Bytes> round_block(Bytes size, Bytes page,
                                                         unsigned cutoff) noexcept {
  const Bytes linear{std::uint64_t{1} << cutoff};
  if (size > linear) return round_up(size, linear);
  return size < page ? page : Bytes{std::bit_ceil(size.count)};
}

}  // namespace weir
