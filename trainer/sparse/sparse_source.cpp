#include "trainer/sparse/sparse_source.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/mutex.hpp"
#include "trainer/data/batches.hpp"

namespace weir {
namespace {

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
