#pragma once

// The kinds of memory that the driver serves outside the pools, as a table: how each is counted,
// and whether room is made for it. docs/swap-in.md shows the same table.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "allocator/base/names.hpp"

namespace weir::preload {

enum class Kind : std::uint8_t {
  kArrays,
  kMappable,
  kPools,
  kGraphs,
  kModules,
  kContexts,
  kShared,
  kDirect,
  kManaged,
  kHost,
  kSpilled,
  kImported,
};

/// How the bytes of a kind are known.
enum class Sizing : std::uint8_t {
  kAsked,     ///< by the request
  kReserved,  ///< the driver says what it keeps
  kMeasured,  ///< by how much less the device has free
  kNone,      ///< takes no memory of its own
};
[[nodiscard]] constexpr auto names_of(Sizing /*of*/) noexcept {
  return name_table("asked", "reserved", "measured", "none");
}

struct KindRow {
  Kind kind;
  std::string_view name;  ///< in summaries and reports
  std::string_view what;  ///< for people
  Sizing sizing;
  bool counts;      ///< against the budget
  bool needs_room;  ///< takes room on the device: it is asked again once room was made
  bool by_handle;   ///< its handles are numbers of their own, not addresses
};

/// In the order of Kind.
inline constexpr std::array kKindRows{
    KindRow{Kind::kArrays, "arrays", "arrays and mipmapped arrays", Sizing::kAsked, true, true,
            true},
    KindRow{Kind::kMappable, "mappable", "handles of cuMemCreate", Sizing::kAsked, true, true,
            true},
    KindRow{Kind::kPools, "pools", "the program's own pools", Sizing::kReserved, true, true, false},
    KindRow{Kind::kGraphs, "graphs", "graphs with allocations", Sizing::kReserved, true, true,
            false},
    KindRow{Kind::kModules, "modules", "code and its variables", Sizing::kMeasured, true, true,
            true},
    KindRow{Kind::kContexts, "contexts", "CUDA's own memory", Sizing::kMeasured, true, true, false},
    KindRow{Kind::kShared, "shared", "shared by cuIpcGetMemHandle", Sizing::kAsked, true, true,
            false},
    KindRow{Kind::kDirect, "direct", "served by the driver otherwise", Sizing::kAsked, true, true,
            false},
    KindRow{Kind::kManaged, "managed", "managed memory", Sizing::kAsked, false, true, false},
    KindRow{Kind::kHost, "host", "page-locked host memory", Sizing::kAsked, false, false, false},
    KindRow{Kind::kSpilled, "spilled", "host memory given for device memory", Sizing::kAsked, false,
            false, false},
    KindRow{Kind::kImported, "imported", "memory of another process", Sizing::kNone, false, true,
            true},
};
inline constexpr std::size_t kKinds = kKindRows.size();

[[nodiscard]] constexpr const KindRow& row_of(Kind kind) noexcept {
  return kKindRows[static_cast<std::size_t>(kind)];
}
[[nodiscard]] constexpr bool are_in_order() noexcept {
  for (std::size_t i = 0; i < kKinds; ++i) {
    if (kKindRows[i].kind != static_cast<Kind>(i)) return false;
  }
  return true;
}
static_assert(are_in_order());

}  // namespace weir::preload
