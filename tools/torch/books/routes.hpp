#pragma once

// Which requests belong to a private pool: PyTorch gives a filter for each pool that a graph's
// capture or a MemPool allocates to.

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::torch_plug {

/// Thread-safe. Filters are called under no lock: they ask the driver, and a program's own may do
/// anything. While no pool is open, a request costs one load.
template <typename Pool, typename Stream>
class Routes {
 public:
  using Filter = std::function<bool(Stream)>;

  /// Opens `pool` on `device` to what `filter` matches. Throws std::bad_alloc and is then
  /// unchanged.
  void open(int device, Pool pool, Filter filter) {
    std::shared_ptr<const List> old;
    const std::lock_guard lock(mutex_);
    auto list = std::make_shared<List>(list_ != nullptr ? *list_ : List{});
    list->push_back({device, std::move(pool), std::move(filter)});
    old = replace(std::move(list));
  }

  /// Closes it. Requests that are being matched may still match. Does nothing if it is not open.
  void close(int device, const Pool& pool) {
    std::shared_ptr<const List> old;
    const std::lock_guard lock(mutex_);
    if (list_ == nullptr) return;
    auto list = std::make_shared<List>(*list_);
    const auto found = std::find_if(list->begin(), list->end(), [&](const Route& route) {
      return route.device == device && route.pool == pool;
    });
    if (found == list->end()) return;
    list->erase(found);
    old = replace(std::move(list));
  }

  /// Whether a pool is open on any device.
  [[nodiscard]] bool any() const noexcept { return open_.load(std::memory_order_acquire); }

  /// Whether a request on `device` and `stream` belongs to an open pool.
  [[nodiscard]] bool match(int device, Stream stream) const {
    if (!any()) return false;
    const std::shared_ptr<const List> list = [this] {
      const std::lock_guard lock(mutex_);
      return list_;
    }();
    return std::any_of(list->begin(), list->end(), [&](const Route& route) {
      return route.device == device && route.filter(stream);
    });
  }

 private:
  struct Route {
    int device;
    Pool pool;
    Filter filter;
  };
  using List = std::vector<Route>;

  /// Returns the old list. It ends after the lock, and with it a filter: that may be a program's.
  std::shared_ptr<const List> replace(std::shared_ptr<const List> list) noexcept {
    open_.store(!list->empty(), std::memory_order_release);
    return std::exchange(list_, std::move(list));
  }

  mutable std::mutex mutex_;
  std::shared_ptr<const List> list_;  ///< guarded by mutex_; copied before it is changed
  std::atomic<bool> open_{false};
};

}  // namespace weir::torch_plug
