#include "tools/timeline/analysis/stack.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "tools/timeline/analysis/grouped_replay.hpp"

namespace weir::timeline {
namespace {

/// The layer of each group. Groups with the highest peaks have their own.
struct Layers {
  std::vector<std::size_t> of_group{};
  std::vector<std::string> keys{};  ///< without `other`
  bool any_other = false;
};

Layers choose_layers(const Index& index, const PoolInfo& pool, const StackOptions& options) {
  std::vector<std::uint64_t> peaks;
  GroupedReplay grouped(index, pool, options.by);
  while (grouped.next()) {
    const std::size_t grown = grouped.grown();
    if (grown == GroupedReplay::kNoGroup) continue;
    peaks.resize(grouped.groups().size());
    peaks[grown] = std::max(peaks[grown], grouped.groups()[grown].bytes);
  }
  std::vector<std::size_t> order(grouped.groups().size());
  peaks.resize(order.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t kept = std::min(options.most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return peaks[a] != peaks[b] ? peaks[a] > peaks[b] : a < b;
                    });
  Layers layers{.of_group = std::vector<std::size_t>(order.size(), kept),
                .any_other = kept < order.size()};
  for (std::size_t i = 0; i < kept; ++i) {
    layers.of_group[order[i]] = i;
    layers.keys.push_back(grouped.text(grouped.groups()[order[i]].key));
  }
  return layers;
}

/// The values of all layers at one moment.
struct Moment {
  std::uint64_t at = 0;
  std::uint64_t number = 0;
  std::uint64_t total = 0;
  std::uint64_t awaiting = 0;
  std::uint64_t cached = 0;
  std::vector<std::uint64_t> values{};
};

/// Keeps four moments of each column, as Reducer does.
class StackReducer {
 public:
  StackReducer(Span span, std::uint32_t columns, Stack& stack)
      : span_(span),
        width_(std::max<std::uint64_t>(span.length() / std::max<std::uint32_t>(columns, 1) + 1, 1)),
        stack_(stack) {}

  void add(Moment& moment) {
    if (moment.at > span_.end) return;
    if (moment.at <= span_.begin) {
      moment.at = span_.begin;
      before_ = moment;
      has_before_ = true;
      return;
    }
    if (std::exchange(has_before_, false)) put(before_);
    put(moment);
  }
  void finish() {
    if (std::exchange(has_before_, false)) put(before_);
    if (any_) close_column();
  }

 private:
  void put(const Moment& moment) {
    const std::uint64_t column = (moment.at - span_.begin) / width_;
    if (any_ && column != column_) close_column();
    if (!any_) {
      first_ = lowest_ = highest_ = moment;
      column_ = column;
      any_ = true;
    }
    if (moment.total < lowest_.total) lowest_ = moment;
    if (moment.total > highest_.total) highest_ = moment;
    last_ = moment;
  }
  void close_column() {
    std::array<const Moment*, 4> of_column{&first_, &lowest_, &highest_, &last_};
    std::ranges::sort(of_column, {}, &Moment::number);
    const Moment* kept = nullptr;
    for (const Moment* moment : of_column) {
      if (kept == nullptr || kept->number != moment->number) keep(*moment);
      kept = moment;
    }
    any_ = false;
  }
  void keep(const Moment& moment) {
    stack_.at.push_back(moment.at);
    stack_.awaiting.push_back(moment.awaiting);
    stack_.cached.push_back(moment.cached);
    for (std::size_t i = 0; i < stack_.layers.size(); ++i)
      stack_.layers[i].values.push_back(moment.values[i]);
  }

  Span span_;
  std::uint64_t width_;
  Stack& stack_;
  bool any_ = false;
  bool has_before_ = false;
  std::uint64_t column_ = 0;
  Moment before_;
  Moment first_;
  Moment lowest_;
  Moment highest_;
  Moment last_;
};

/// Applies the changes of the last record.
void follow(const GroupedReplay& grouped, const Layers& layers, Moment& now) {
  const auto set = [&](std::size_t group) {
    if (group == GroupedReplay::kNoGroup) return;
    const std::size_t layer = layers.of_group[group];
    if (layer < layers.keys.size()) now.values[layer] = grouped.groups()[group].bytes;
  };
  if (grouped.bytes() == 0) std::ranges::fill(now.values, 0);
  set(grouped.shrunk());
  set(grouped.grown());
  const PoolReplay& replay = grouped.replay();
  now.at = replay.at();
  now.total = std::max(replay.counts().allocated, grouped.bytes());
  now.awaiting = replay.counts().awaiting;
  now.cached = replay.counts().cached;
  ++now.number;
  std::uint64_t named = 0;
  for (std::size_t layer = 0; layer < layers.keys.size(); ++layer)
    named = add_capped(named, now.values[layer]);
  now.values.back() = less_or_zero(now.total, named);
}

}  // namespace

Stack stacked(const Index& index, const PoolInfo& pool, Span span, const StackOptions& options) {
  const Layers layers = choose_layers(index, pool, options);
  Stack stack;
  for (const std::string& key : layers.keys) stack.layers.push_back({.key = key});
  stack.layers.push_back({.key = "other"});
  StackReducer reducer(span, options.columns, stack);
  GroupedReplay grouped(index, pool, options.by);
  Moment now{.values = std::vector<std::uint64_t>(stack.layers.size())};
  while (grouped.next()) {
    follow(grouped, layers, now);
    reducer.add(now);
  }
  reducer.finish();
  const auto& rest = stack.layers.back().values;
  if (!layers.any_other && std::ranges::all_of(rest, [](std::uint64_t v) { return v == 0; }))
    stack.layers.pop_back();
  return stack;
}

}  // namespace weir::timeline
