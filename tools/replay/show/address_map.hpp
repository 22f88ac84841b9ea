#pragma once

// What lay where, and when: the buffers of a trace and the memory that a pool held, as areas over
// operations and addresses.

#include <cstdint>
#include <map>
#include <vector>

#include "tools/replay/measure/engine.hpp"
#include "tools/replay/subject/counted_upstream.hpp"

namespace weir::replay {

/// What one cell of a picture shows; of several the one that most of it is.
enum class Cell : std::uint8_t {
  kNothing,   ///< not held
  kHole,      ///< held, and mostly not in use
  kPartLive,  ///< about half in use
  kLive,      ///< mostly in use
};

struct Raster {
  std::size_t columns = 0;  ///< along the operations
  std::size_t rows = 0;     ///< along the addresses, from the lowest
  std::vector<Cell> cells;  ///< row by row

  [[nodiscard]] Cell at(std::size_t row, std::size_t column) const {
    return cells[row * columns + column];
  }
};

/// Whether `held` is so much more than `used` that a plot of it would show nothing else.
[[nodiscard]] constexpr bool dwarfs(Bytes held, Bytes used) noexcept {
  return held.count / 4 > used.count;
}

class AddressMap {
 public:
  explicit AddressMap(std::uint64_t operations) : operations_(operations) {}

  // While the trace is replayed, in order.
  void add(const Step& step);
  void add(const DriverEvent& event);
  /// What is live and held now stays so up to operation `end`, and no more comes.
  void finish(std::uint64_t end);

  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  // Once it is finished.
  /// The sum of all addresses that were ever held, or, where they would dwarf them, of those that
  /// were ever in use. Addresses between them are left out.
  [[nodiscard]] Bytes height() const;
  /// How much was held and is left out.
  [[nodiscard]] Bytes left_out() const;
  [[nodiscard]] Raster raster(std::size_t columns, std::size_t rows) const;

 private:
  /// Addresses from `begin` up to `end`, during the operations from `from` up to `to`.
  struct Area {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t from = 0, to = 0;
  };
  /// Of addresses that are shown, the lowest of a run and how many are below it.
  struct Run {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t below = 0;
  };
  using Open = std::map<std::uint64_t, Area>;  ///< by address

  static void close(Open& open, Open::iterator area, std::uint64_t now, std::vector<Area>& closed);
  [[nodiscard]] static std::vector<Run> runs_of(const std::vector<Area>& areas);
  [[nodiscard]] static Bytes sum_of(const std::vector<Run>& runs);

  const std::uint64_t operations_;
  std::uint64_t now_ = 0;  ///< the operation that is under way
  Open live_, held_;
  std::vector<Area> was_live_, was_held_;
  std::vector<Run> shown_;
  Bytes left_out_;
};

}  // namespace weir::replay
