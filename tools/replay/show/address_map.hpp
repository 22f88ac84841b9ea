#pragma once

// A map of memory over time: a trace's buffers and a pool's held memory, as areas over operations
// and addresses.

#include <cstdint>
#include <map>
#include <vector>

#include "tools/replay/measure/engine.hpp"
#include "tools/replay/subject/pool_subject.hpp"

namespace weir::replay {

/// The content of one cell of a picture; the most frequent one if several share it.
enum class Cell : std::uint8_t {
  kNothing,   ///< not held
  kHole,      ///< held, and mostly not in use
  kPartLive,  ///< about half in use
  kLive,      ///< mostly in use
};

struct Raster {
  std::size_t columns = 0;  ///< along the axis of operations
  std::size_t rows = 0;     ///< along the axis of addresses, from the lowest
  std::vector<Cell> cells;  ///< row by row

  [[nodiscard]] Cell at(std::size_t row, std::size_t column) const {
    return cells[row * columns + column];
  }
};

/// Returns whether `held` is so much larger than `used` that a plot would show nothing else.
[[nodiscard]] constexpr bool dwarfs(Bytes held, Bytes used) noexcept {
  return held.count / 4 > used.count;
}

class AddressMap {
 public:
  explicit AddressMap(std::uint64_t operations) : operations_(operations) {}

  // Adds a step. Call in the order of the replay.
  void add(const Step& step);
  void add(const DriverEvent& event);
  /// Ends the map. What is live and held stays so up to operation `end`.
  void finish(std::uint64_t end);

  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  // Valid once finished.
  /// Returns the sum of all addresses that were ever held. If these dwarf the used ones, returns
  /// the sum of those that were ever in use. Addresses between them are left out.
  [[nodiscard]] Bytes height() const;
  /// Returns the held bytes that are left out.
  [[nodiscard]] Bytes left_out() const;
  [[nodiscard]] Raster raster(std::size_t columns, std::size_t rows) const;

 private:
  /// Addresses from `begin` to `end`, during operations `from` to `to`.
  struct Area {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t from = 0, to = 0;
  };
  /// A run of addresses that are shown: its lowest address, and how many shown ones are below it.
  struct Run {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t below = 0;
  };
  using Open = std::map<std::uint64_t, Area>;  ///< by address

  static void close(Open& open, Open::iterator area, std::uint64_t now, std::vector<Area>& closed);
  [[nodiscard]] static std::vector<Run> runs_of(const std::vector<Area>& areas);
  [[nodiscard]] static Bytes sum_of(const std::vector<Run>& runs);

  const std::uint64_t operations_;
  std::uint64_t now_ = 0;  ///< the current operation
  Open live_, held_;
  std::vector<Area> was_live_, was_held_;
  std::vector<Run> shown_;
  Bytes left_out_;
};

}  // namespace weir::replay
