#include "trainer/sparse/sparse_source.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/mutex.hpp"
#include "kernels/parts/philox.hpp"
#include "trainer/data/batches.hpp"

namespace weir {
namespace {

/// Philox streams of their own: tensors' are far below, shuffles' far above.
constexpr std::uint32_t kRowStreamHigh = 0x40000000U;
constexpr std::uint32_t kClassStreamHigh = 0x50000000U;

/// Random words, one after another, that depend only on the seed and the stream.
class Words {
 public:
  Words(std::uint64_t seed, std::uint32_t stream_high, std::uint64_t number)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
        counter_{.x = 0,
                 .y = 0,
                 .z = static_cast<std::uint32_t>(number),
                 .w = stream_high ^ static_cast<std::uint32_t>(number >> 32U)} {}

  std::uint32_t next() {
    if (used_ == block_.size()) {
      const PhiloxWords drawn = philox4x32(counter_, key_);
      block_ = {drawn.x, drawn.y, drawn.z, drawn.w};
      ++counter_.x;
      used_ = 0;
    }
    return block_[used_++];
  }
  /// Draws from 0 to `limit` - 1, each with the same probability but for `limit` / 2^32.
  std::uint64_t below(std::uint64_t limit) { return (next() * limit) >> 32U; }
  /// Draws k - 1, from 0 to `limit` - 1, where the probability of k falls as 1 / k, in steps: all k
  /// between two powers of two have the same, and all those intervals too.
  std::uint64_t power_law(std::uint64_t limit) {
    for (;;) {
      const std::uint64_t first = std::uint64_t{1}
                                  << below(static_cast<std::uint64_t>(std::bit_width(limit)));
      const std::uint64_t k = first + below(first);
      if (k <= limit) return k - 1;  // the last interval may reach beyond
    }
  }

 private:
  const PhiloxKey key_;
  PhiloxWords counter_;
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_ = 4;
};

/// Returns a step that visits all of `count` places in turn: about the golden section of it, so
/// that neighbours come to lie far apart.
std::uint64_t coprime_step(std::uint64_t count) {
  std::uint64_t step = std::max<std::uint64_t>(count * 618 / 1000, 1);
  while (std::gcd(step, count) != 1) ++step;
  return step;
}

void require(std::string_view what, std::uint64_t value, std::uint64_t most) {
  if (value >= 1 && value <= most) return;
  throw UsageError("made rows: expected " + std::string(what) + " from 1 to " +
                   std::to_string(most) + ", found " + std::to_string(value));
}

const SparseShape& checked(const SparseShape& shape) {
  require("inputs", shape.columns, SparseDraw::kMostColumns);
  require("classes", shape.classes, kMostSparse);
  // Such that 3 / 2 of it fit.
  require("entries a row", shape.nnz, std::max<std::size_t>(shape.columns * 2 / 3, 1));
  require("labels a row", shape.most_labels, shape.classes);
  return shape;
}

/// The columns of a row, each once.
class Chosen {
 public:
  Chosen(std::size_t columns, std::vector<std::uint32_t>& to)
      : taken_(columns), to_(to), first_(to.size()) {}
  [[nodiscard]] bool has(std::uint64_t column) const { return taken_[column]; }
  /// Returns false if the row has it already.
  bool take(std::uint64_t column) {
    if (taken_[column]) return false;
    taken_[column] = true;
    to_.push_back(static_cast<std::uint32_t>(column));
    return true;
  }
  [[nodiscard]] std::size_t count() const { return to_.size() - first_; }
  void sort() { std::sort(to_.begin() + static_cast<std::ptrdiff_t>(first_), to_.end()); }

 private:
  std::vector<bool> taken_;
  std::vector<std::uint32_t>& to_;
  const std::size_t first_;
};

void start(const SparseRows& data, SparseRows& rows) {
  rows.columns = data.columns;
  rows.classes = data.classes;
}

/// The orders of the epochs in which readers are. Thread-safe.
class EpochOrders {
 public:
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;

  EpochOrders(std::size_t rows, std::uint64_t seed)
      : rows_(static_cast<std::uint32_t>(rows)), seed_(seed) {}

  /// Keeps one even and one odd epoch: around an epoch's end readers are in both.
  [[nodiscard]] Order of(std::uint64_t epoch) {
    const Lock lock(mutex_);
    auto& [number, order] = kept_.at(epoch % 2);
    if (order == nullptr || number != epoch) {
      order = std::make_shared<const std::vector<std::uint32_t>>(epoch_order(rows_, seed_, epoch));
      number = epoch;
    }
    return order;
  }

 private:
  const std::uint32_t rows_;
  const std::uint64_t seed_;
  Mutex mutex_{LockRank::kLeaf};
  std::array<std::pair<std::uint64_t, Order>, 2> kept_ WEIR_GUARDED_BY(mutex_);
};

/// The rows of a batch within its epoch: from `first` up to, but not including, `end`.
struct Place {
  std::uint64_t epoch;
  std::size_t first;
  std::size_t end;
};
Place place_of(std::uint64_t index, std::size_t rows, std::uint64_t rows_per_batch) {
  const std::uint64_t per_epoch = batches_of(rows, rows_per_batch);
  const std::size_t first = index % per_epoch * rows_per_batch;
  return {index / per_epoch, first, std::min(first + rows_per_batch, rows)};
}

}  // namespace

SparseDraw::SparseDraw(const SparseShape& shape, std::uint64_t seed)
    : shape_(checked(shape)), seed_(seed), step_(coprime_step(shape.columns)) {}

void SparseDraw::append(std::uint64_t number, SparseRows& rows) const {
  rows.columns = shape_.columns;
  rows.classes = shape_.classes;
  Words words(seed_, kRowStreamHigh, number);
  const std::size_t half = shape_.nnz / 2;
  const std::size_t count = shape_.nnz - half + words.below(2 * half + 1);

  const auto first_label = static_cast<std::ptrdiff_t>(rows.labels.size());
  for (std::uint64_t left = 1 + words.below(shape_.most_labels); left > 0; --left) {
    std::uint64_t label = words.power_law(shape_.classes);
    const auto is_taken = [&] {
      return std::find(rows.labels.begin() + first_label, rows.labels.end(), label) !=
             rows.labels.end();
    };
    while (is_taken()) label = (label + 1) % shape_.classes;
    rows.labels.push_back(static_cast<std::uint32_t>(label));
  }
  std::sort(rows.labels.begin() + first_label, rows.labels.end());

  Chosen columns(shape_.columns, rows.indices);
  const std::uint64_t own_columns = std::max<std::uint64_t>(shape_.nnz / 4, 4);
  for (std::size_t i = rows.label_starts.back(); i < rows.labels.size(); ++i) {
    for (std::size_t left = std::max<std::size_t>(count / 8, 1); left > 0; --left) {
      if (columns.count() == count) break;
      const std::uint64_t which = words.below(own_columns);
      Words own(seed_, kClassStreamHigh + static_cast<std::uint32_t>(which), rows.labels[i]);
      columns.take(own.below(shape_.columns));
    }
  }
  while (columns.count() < count) {
    // Frequent columns are soon all taken: then the next less frequent one that is free.
    std::uint64_t rank = words.power_law(shape_.columns);
    for (int tries = 0; tries < 4 && columns.has(rank * step_ % shape_.columns); ++tries) {
      rank = words.power_law(shape_.columns);
    }
    while (!columns.take(rank * step_ % shape_.columns)) ++rank;
  }
  columns.sort();
  while (rows.values.size() < rows.indices.size()) {
    rows.values.push_back(static_cast<float>(1 + words.below(1000)) / 1000.0F);
  }
  rows.end_row();
}

SparseSource shuffled_rows(std::shared_ptr<const SparseRows> data, std::uint64_t rows_per_batch,
                           std::uint64_t seed) {
  auto orders = std::make_shared<EpochOrders>(data->rows(), seed);
  return [data = std::move(data), rows_per_batch, orders](std::uint64_t index, SparseRows& rows) {
    start(*data, rows);
    const Place place = place_of(index, data->rows(), rows_per_batch);
    const EpochOrders::Order order = orders->of(place.epoch);
    for (std::size_t i = place.first; i < place.end; ++i) rows.append(*data, (*order)[i]);
  };
}

SparseSource ordered_rows(const SparseRows& data, std::uint64_t rows_per_batch) {
  return [&data, rows_per_batch](std::uint64_t index, SparseRows& rows) {
    start(data, rows);
    const Place place = place_of(index, data.rows(), rows_per_batch);
    for (std::size_t i = place.first; i < place.end; ++i) rows.append(data, i);
  };
}

SparseSource generated_rows(SparseDraw draw, std::uint64_t rows_per_batch, std::stop_token stop) {
  return [draw, rows_per_batch, stop = std::move(stop)](std::uint64_t index, SparseRows& rows) {
    for (std::uint64_t i = 0; i < rows_per_batch; ++i) {
      if (stop.stop_requested()) throw Cancelled("stopped while rows were made");
      draw.append(index * rows_per_batch + i, rows);
    }
  };
}

}  // namespace weir
