#include "tools/timeline/page/memory.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace weir::timeline {
namespace {

// The most blocks to examine for all moments of a picture; limits the running time.
constexpr std::uint64_t kMostLookedAt = 200'000'000;

[[nodiscard]] std::uint32_t key_of(const Block& block, std::size_t keying) {
  switch (static_cast<Keying>(keying)) {
    case Keying::kLabel:
      return block.name;
    case Keying::kKind:
      return block.kind;
    case Keying::kSite:
      break;
  }
  return block.site;
}

// A key's live bytes over time.
struct KeyFigures {
  std::uint64_t now = 0;
  std::uint64_t most = 0;
  std::uint64_t since = 0;  // the last change of `now`
  double area = 0;          // bytes times nanoseconds

  void change(std::uint64_t time, std::uint64_t plus, std::uint64_t minus) {
    area += static_cast<double>(now) * static_cast<double>(time - since);
    since = time;
    now = now + plus - minus;
    most = std::max(most, now);
  }
  // Near 1 for memory that is always there, which belongs at the bottom of a stack.
  [[nodiscard]] double steadiness(std::uint64_t duration) const {
    const double whole = static_cast<double>(most) * static_cast<double>(duration);
    return whole > 0 ? area / whole : 0;
  }
};

// The first pass over a pool: its keys, its peak, and the maximum of each column.
class Survey {
 public:
  Survey(std::size_t names, Columns columns) : columns_(columns) {
    for (auto& keys : keys_) {
      keys.resize(std::max<std::size_t>(1, names));
    }
  }

  void add(const LiveBlocks& live, const LiveBlocks::Step& step) {
    for (std::size_t k = 0; k < kKeyings; ++k) {
      for (const Block& block : step.left) {
        figures(k, block).change(step.time, 0, block.bytes);
      }
      if (step.came != nullptr) {
        figures(k, *step.came).change(step.time, step.came->bytes, 0);
      }
    }
    blocks_ += step.came != nullptr ? 1 : 0;
    note_held(step.time, live.allocated() + live.awaiting());
  }

  [[nodiscard]] std::vector<std::uint32_t> shown(std::size_t keying, std::uint64_t duration) {
    auto& keys = keys_[keying];
    std::vector<std::uint32_t> out;
    for (std::uint32_t key = 0; key < keys.size(); ++key) {
      keys[key].change(std::max(duration, keys[key].since), 0, 0);
      if (keys[key].most > 0) {
        out.push_back(key);
      }
    }
    std::stable_sort(out.begin(), out.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return keys[a].most > keys[b].most; });
    out.resize(std::min(out.size(), kKeysShown));
    std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
      return keys[a].steadiness(duration) > keys[b].steadiness(duration);
    });
    return out;
  }
  [[nodiscard]] std::uint64_t peak() const { return peak_; }
  [[nodiscard]] std::uint64_t peak_time() const { return peak_time_; }
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  [[nodiscard]] const std::vector<std::uint64_t>& moments() const { return moments_; }

 private:
  [[nodiscard]] KeyFigures& figures(std::size_t keying, const Block& block) {
    const std::uint32_t key = key_of(block, keying);
    return keys_[keying][key < keys_[keying].size() ? key : 0];
  }
  void note_held(std::uint64_t time, std::uint64_t held) {
    if (held > peak_) {
      peak_ = held;
      peak_time_ = time;
    }
    const std::uint32_t column = columns_.of(time);
    if (moments_.empty() || column != column_) {
      column_ = column;
      column_most_ = held;
      moments_.push_back(time);
    } else if (held > column_most_) {
      column_most_ = held;
      moments_.back() = time;
    }
  }

  Columns columns_;
  std::array<std::vector<KeyFigures>, kKeyings> keys_;
  std::uint64_t blocks_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t peak_time_ = 0;
  std::uint32_t column_ = 0;
  std::uint64_t column_most_ = 0;
  std::vector<std::uint64_t> moments_;
};

[[nodiscard]] bool larger(const Block& a, const Block& b) {
  if (a.bytes != b.bytes) {
    return a.bytes > b.bytes;
  }
  return a.begin != b.begin ? a.begin < b.begin : a.id < b.id;
}

// The blocks listed at some moment, and their ends.
class Lives {
 public:
  void mark(const Block& block) {
    if (open_.try_emplace(block.id, lives_.size()).second) {
      lives_.push_back({block, 0});
    }
  }
  void end(const Block& block, std::uint64_t time) {
    const auto at = open_.find(block.id);
    if (at != open_.end()) {
      lives_[at->second].end = time;
      open_.erase(at);
    }
  }
  void end_all(std::uint64_t time) {
    for (const auto& [id, index] : open_) {
      lives_[index].end = time;
    }
    open_.clear();
  }
  [[nodiscard]] std::vector<BlockLife> take() {
    std::stable_sort(lives_.begin(), lives_.end(), [](const BlockLife& a, const BlockLife& b) {
      return a.block.begin != b.block.begin ? a.block.begin < b.block.begin
                                            : a.block.id < b.block.id;
    });
    return std::move(lives_);
  }

 private:
  std::unordered_map<std::uint64_t, std::size_t> open_;
  std::vector<BlockLife> lives_;
};

// Marks the largest blocks at each moment while replaying records.
class Moments {
 public:
  Moments(std::vector<std::uint64_t> times, const std::vector<std::uint64_t>& also,
          std::uint32_t largest)
      : times_(std::move(times)), also_(also.begin(), also.end()), largest_(largest) {
    times_.insert(times_.end(), also.begin(), also.end());
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
  }
  // Call before applying a record of `time`: the current blocks are those of every moment before
  // it.
  void pass(std::uint64_t time, const LiveBlocks& live, Lives& lives) {
    while (next_ < times_.size() && times_[next_] < time) {
      note(times_[next_++], live, lives);
    }
  }
  [[nodiscard]] std::vector<Moment> take() { return std::move(out_); }

 private:
  void note(std::uint64_t time, const LiveBlocks& live, Lives& lives) {
    const std::vector<Block>& blocks = live.blocks();
    looked_at_ += blocks.size();
    if (looked_at_ > kMostLookedAt && !also_.contains(time)) {
      return;
    }
    order_.clear();
    for (const Block& block : blocks) {
      order_.push_back(&block);
    }
    const std::size_t most = std::min<std::size_t>(largest_, order_.size());
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(most),
                      order_.end(), [](const Block* a, const Block* b) { return larger(*a, *b); });
    for (std::size_t i = 0; i < most; ++i) {
      lives.mark(*order_[i]);
    }
    out_.push_back({time, blocks.size(), live.bytes()});
  }

  std::vector<std::uint64_t> times_;
  std::unordered_set<std::uint64_t> also_;
  std::uint32_t largest_;
  std::size_t next_ = 0;
  std::uint64_t looked_at_ = 0;
  std::vector<const Block*> order_;
  std::vector<Moment> out_;
};

// Bytes by key, in stacking order.
class Stacks {
 public:
  Stacks(const MemoryPicture& picture, std::size_t names) {
    std::size_t first = kStackColumn;
    for (std::size_t k = 0; k < kKeyings; ++k) {
      const auto& keys = picture.keys[k];
      columns_[k].assign(std::max<std::size_t>(1, names), first + keys.size());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        columns_[k][keys[i]] = first + i;
      }
      first += keys.size() + 1;
    }
    row_.resize(first);
  }
  [[nodiscard]] std::size_t width() const { return row_.size(); }

  [[nodiscard]] const std::vector<std::int64_t>& after(const LiveBlocks& live,
                                                       const LiveBlocks::Step& step) {
    for (std::size_t k = 0; k < kKeyings; ++k) {
      for (const Block& block : step.left) {
        column(k, block) -= signed_of(block.bytes);
      }
      if (step.came != nullptr) {
        column(k, *step.came) += signed_of(step.came->bytes);
      }
    }
    row_[kTimeColumn] = signed_of(step.time);
    row_[kHeldColumn] = signed_of(live.allocated() + live.awaiting());
    row_[kReservedColumn] = signed_of(live.reserved());
    row_[kRequestedColumn] = signed_of(live.requested());
    row_[kAllocatedColumn] = signed_of(live.allocated());
    row_[kAwaitingColumn] = signed_of(live.awaiting());
    row_[kBatchColumn] = live.batch();
    return row_;
  }

 private:
  [[nodiscard]] static std::int64_t signed_of(std::uint64_t value) {
    return static_cast<std::int64_t>(std::min(value, std::uint64_t{1} << 52U));
  }
  [[nodiscard]] std::int64_t& column(std::size_t keying, const Block& block) {
    const std::uint32_t key = key_of(block, keying);
    return row_[columns_[keying][key < columns_[keying].size() ? key : 0]];
  }

  std::array<std::vector<std::size_t>, kKeyings> columns_;
  std::vector<std::int64_t> row_;
};

void note_budget(const TimelineRecord& record, MemoryPicture& picture) {
  const bool tells = record.kind == TimelineKind::kBudget || record.kind == TimelineKind::kPool;
  if (tells && record.bytes != 0 &&
      (picture.budget.empty() || picture.budget.back().second != record.bytes)) {
    picture.budget.emplace_back(record.begin, record.bytes);
  }
}

[[nodiscard]] Survey survey_of(const Process& process, const PoolRecords& pool,
                               const BatchKinds& kinds, Columns columns) {
  Survey survey(process.names.size(), columns);
  LiveBlocks live(pool, kinds);
  for (const std::uint32_t index : pool.order) {
    const LiveBlocks::Step step = live.apply(process.records[index]);
    if (step.changed) {
      survey.add(live, step);
    }
  }
  return survey;
}

// The second pass: the series and the listed blocks.
void fill(MemoryPicture& picture, const Process& process, const PoolRecords& pool,
          const BatchKinds& kinds, Columns columns, Moments* moments) {
  Stacks stacks(picture, process.names.size());
  SeriesThinner thinner(stacks.width(), columns);
  Lives lives;
  LiveBlocks live(pool, kinds);
  for (const std::uint32_t index : pool.order) {
    const TimelineRecord& record = process.records[index];
    note_budget(record, picture);
    if (moments != nullptr) {
      moments->pass(record.begin, live, lives);
    }
    const LiveBlocks::Step step = live.apply(record);
    if (!step.changed) {
      continue;
    }
    for (const Block& block : step.went) {
      lives.end(block, step.time);
    }
    if (step.came != nullptr && moments == nullptr) {
      lives.mark(*step.came);
    }
    thinner.add(stacks.after(live, step));
  }
  if (moments != nullptr) {
    moments->pass(columns.duration + 1, live, lives);
    picture.moments = moments->take();
  }
  lives.end_all(columns.duration + 1);
  picture.series = thinner.take();
  picture.lives = lives.take();
}

}  // namespace

MemoryPicture picture_of(const Process& process, const PoolRecords& pool, const BatchKinds& kinds,
                         std::uint64_t duration, const MemoryDetail& detail,
                         const std::vector<std::uint64_t>& also) {
  Survey survey = survey_of(process, pool, kinds, {duration, detail.moments});
  MemoryPicture picture;
  picture.name = pool.name;
  picture.source = pool.source;
  picture.host = pool.host;
  picture.driver = pool.driver;
  for (std::size_t k = 0; k < kKeyings; ++k) {
    picture.keys[k] = survey.shown(k, duration);
  }
  picture.peak = survey.peak();
  picture.peak_time = survey.peak_time();
  std::vector<std::uint64_t> wanted = also;
  wanted.push_back(picture.peak_time);
  Moments moments(survey.moments(), wanted, detail.largest);
  fill(picture, process, pool, kinds, {duration, detail.columns},
       survey.blocks() > detail.lives ? &moments : nullptr);
  return picture;
}

std::vector<const BlockLife*> alive_at(const std::vector<BlockLife>& lives, std::uint64_t time,
                                       std::size_t most) {
  std::vector<const BlockLife*> out;
  for (const BlockLife& life : lives) {
    if (life.block.begin <= time && time < life.end) {
      out.push_back(&life);
    }
  }
  std::sort(out.begin(), out.end(),
            [](const BlockLife* a, const BlockLife* b) { return larger(a->block, b->block); });
  out.resize(std::min(out.size(), most));
  return out;
}

void halve_moments(MemoryPicture& picture, std::uint32_t largest) {
  if (picture.moments.empty()) {
    const std::size_t every = std::max<std::size_t>(1, picture.lives.size() / 1024);
    for (std::size_t i = 0; i < picture.lives.size(); i += every) {
      const std::uint64_t time = picture.lives[i].block.begin;
      if (!picture.moments.empty() && picture.moments.back().time == time) {
        continue;
      }
      std::uint64_t bytes = 0;
      const auto alive = alive_at(picture.lives, time, picture.lives.size());
      for (const BlockLife* life : alive) {
        bytes += life->block.bytes;
      }
      picture.moments.push_back({time, alive.size(), bytes});
    }
  }
  std::vector<Moment> moments;
  std::unordered_set<const BlockLife*> needed;
  for (std::size_t i = 0; i < picture.moments.size(); ++i) {
    const Moment& moment = picture.moments[i];
    if (i % 2 == 0 || moment.time == picture.peak_time) {
      moments.push_back(moment);
      const auto alive = alive_at(picture.lives, moment.time, largest);
      needed.insert(alive.begin(), alive.end());
    }
  }
  std::vector<BlockLife> lives;
  for (const BlockLife& life : picture.lives) {
    if (needed.contains(&life)) {
      lives.push_back(life);
    }
  }
  picture.moments = std::move(moments);
  picture.lives = std::move(lives);
}

}  // namespace weir::timeline
