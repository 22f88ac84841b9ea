#include "allocator/index/block_index.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "allocator/memory/upstream.hpp"

namespace weir {
namespace {

std::uint64_t sequence_on(const Block& block, StreamId stream) {
  if (block.home == stream) return block.home_sequence;
  for (const Point& point : block.other_points()) {
    if (point.stream == stream) return point.sequence;
  }
  return 0;
}

class Oldest {
 public:
  void consider(const Block& block, Point point) {
    if (point.sequence == Block::kUnrecorded) return;
    if (block_ != nullptr && block_->moved_at <= block.moved_at) return;
    block_ = &block;
    point_ = point;
  }
  [[nodiscard]] std::optional<Point> point() const {
    return block_ != nullptr ? std::optional{point_} : std::nullopt;
  }

 private:
  const Block* block_ = nullptr;
  Point point_;
};

}  // namespace

BlockIndex::BlockIndex() { nobody_.passed = std::numeric_limits<std::uint64_t>::max() - 1; }

const Block* BlockIndex::find_around(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto holds = [at](const Block& block) { return block.begin() <= at && at < block.end(); };
  // Blocks do not overlap: only the first that begins here or before can hold it.
  std::uintptr_t begin = at - at % Upstream::kAlignment;
  for (std::size_t i = 0; i <= blocks_.size(); ++i, begin -= Upstream::kAlignment) {
    const Block* const block = blocks_.find(reinterpret_cast<const void*>(begin));
    if (block != nullptr) return holds(*block) ? block : nullptr;
    if (begin == 0) return nullptr;
  }
  const Block* found = nullptr;
  blocks_.for_each([&](const Block& block) {
    if (holds(block)) found = &block;
  });
  return found;
}

void BlockIndex::hand_out(Block& block, StreamId stream) {
  if (block.owner->home != stream) {
    if (streams_.size() >= forget_at_) forget_idle_streams();
    set_owner(block, stream);
  }
  block.home = stream;
}

void BlockIndex::add_use(Block& block, StreamId stream) {
  if (stream == block.home) return;
  if (std::ranges::count(block.other_points(), stream, &Point::stream) != 0) return;
  if (streams_.size() >= forget_at_) forget_idle_streams();
  StreamState& state = state_of(stream);
  if (block.others == nullptr) block.others = take_points();
  block.others->push_back({stream, 0});
  ++state.users;
}

std::unique_ptr<std::vector<Point>> BlockIndex::take_points() {
  if (spare_points_.empty()) {
    if (points_made_ == spare_points_.capacity()) spare_points_.reserve(2 * points_made_ + 8);
    auto points = std::make_unique<std::vector<Point>>();
    ++points_made_;
    return points;
  }
  auto points = std::move(spare_points_.back());
  spare_points_.pop_back();
  return points;
}

void BlockIndex::drop_points(Block& block) noexcept {
  if (block.others == nullptr) return;
  for (const Point& point : *block.others) --streams_.find(point.stream)->second.users;
  block.others->clear();
}

void BlockIndex::keep_points(Block& block) noexcept {
  if (block.others == nullptr) return;
  drop_points(block);
  spare_points_.push_back(std::move(block.others));
}

void BlockIndex::forget_idle_streams() noexcept {
  std::erase_if(streams_, [this](const auto& each) {
    const auto& [stream, state] = each;
    if (state.users != 0 || state.pending) return false;
    forget(stream);
    return true;
  });
  forget_at_ = std::max(kIdleStreams, 2 * streams_.size());
}

bool BlockIndex::is_passed(Point point) const {
  const auto state = streams_.find(point.stream);
  return state != streams_.end() && point.sequence <= state->second.passed;
}

std::optional<Point> BlockIndex::blocking_point(const Block& block) const {
  // The own stream may reuse a block before its point is passed, but not before it is recorded:
  // another stream may take the cached block and needs the point.
  const bool needs_home = awaits_home() || block.home_sequence == Block::kUnrecorded;
  if (needs_home && !block.owner->passed(block)) return block.home_point();
  for (const Point& point : block.other_points()) {
    if (!is_passed(point)) return point;
  }
  return std::nullopt;
}

void BlockIndex::note_points(StreamState& state) noexcept {
  if (&state == &nobody_) return;
  const Block* const back = state.awaiting.back();
  const bool is_pending =
      state.last > state.passed ||
      (back != nullptr && sequence_on(*back, state.stream) == Block::kUnrecorded);
  if (is_pending == state.pending) return;
  if (is_pending) {
    pending_.add(state);
  } else {
    pending_.remove(state);
  }
}

BlockState BlockIndex::place_freed(Block& block) noexcept {
  const auto note = [this](StreamState& state, std::uint64_t sequence) {
    if (sequence == Block::kUnrecorded || sequence <= state.last) return;
    state.last = sequence;
    note_points(state);
  };
  note(*block.owner->state, block.home_sequence);
  for (const Point& point : block.other_points()) {
    note(streams_.find(point.stream)->second, point.sequence);
  }
  const auto blocking = blocking_point(block);
  if (!blocking) {
    drop_points(block);
    place_cached(block);
    return BlockState::kCached;
  }
  block.state = BlockState::kAwaiting;
  const StreamId stream = blocking->stream;
  StreamState& state = streams_.find(stream)->second;
  state.awaiting.insert_sorted(block, [stream](const Block& b) { return sequence_on(b, stream); });
  note_points(state);
  return BlockState::kAwaiting;
}

Bytes BlockIndex::note_passed(StreamId stream, std::uint64_t sequence) {
  Bytes moved;
  const auto known = streams_.find(stream);
  if (known == streams_.end()) return moved;
  StreamState& state = known->second;
  if (sequence <= state.passed) return moved;
  state.passed = sequence;
  while (Block* block = state.awaiting.front()) {
    if (sequence_on(*block, stream) > sequence) break;
    state.awaiting.remove(*block);
    const Bytes size = block->size;
    // It may now await another stream's point.
    if (place_freed(*block) == BlockState::kCached) moved += size;
  }
  while (Block* block = state.unpassed.front()) {
    if (!block->owner->passed(*block)) break;
    make_common(*block);
  }
  note_points(state);
  passed_more(stream);
  return moved;
}

Bytes BlockIndex::note_recorded(Point point, std::uint64_t freed_by) {
  Bytes moved;
  std::vector<Block*> parked;
  const auto known = streams_.find(point.stream);
  if (known == streams_.end()) return moved;
  StreamState& state = known->second;
  for (Block* block = state.awaiting.front(); block != nullptr;
       block = BlockList<&Block::by_stream>::next(*block)) {
    const bool is_parked = sequence_on(*block, point.stream) == Block::kUnrecorded;
    if (is_parked && block->moved_at <= freed_by) parked.push_back(block);
  }
  for (Block* block : parked) {
    state.awaiting.remove(*block);
    if (block->home == point.stream) block->home_sequence = point.sequence;
    for (Point& own : block->other_points()) {
      if (own.stream == point.stream) own.sequence = point.sequence;
    }
    // The device may have passed the point already, and no poll reports that again.
    const Bytes size = block->size;
    if (place_freed(*block) == BlockState::kCached) moved += size;
  }
  note_points(state);
  return moved;
}

void BlockIndex::add_releasable(Block& block, Bytes part) noexcept {
  if (part.count == 0) return;
  releasable_ += part;
  releasable_blocks_.insert(block);
}

void BlockIndex::subtract_releasable(Block& block, Bytes part) noexcept {
  if (part.count == 0) return;
  releasable_ -= part;
  releasable_blocks_.remove(block);
}

Bytes BlockIndex::take_releasable(Bytes need, std::vector<Segment>& taken) {
  Bytes sum;
  std::size_t count = 0;
  for (const Block* block = releasable_blocks_.front(); block != nullptr && sum < need;
       block = releasable_blocks_.next(*block)) {
    sum += block->size;
    ++count;
  }
  taken.reserve(taken.size() + count);  // a throw later would lose a segment
  for (; count != 0; --count) {
    Block& block = *releasable_blocks_.front();
    taken.push_back({block.pointer, block.size});
    remove_releasable(block);
  }
  return sum;
}

std::optional<Point> BlockIndex::oldest_awaiting() const {
  Oldest oldest;
  for (const StreamState* state = pending_.front(); state != nullptr; state = state->after) {
    const Block* front = state->awaiting.front();
    if (front == nullptr) continue;
    oldest.consider(*front, {state->stream, sequence_on(*front, state->stream)});
  }
  return oldest.point();
}

std::optional<Point> BlockIndex::oldest_outstanding() const {
  Oldest oldest;
  for (const StreamState* state = pending_.front(); state != nullptr; state = state->after) {
    const Block* front = state->awaiting.front();
    if (front != nullptr) {
      oldest.consider(*front, {state->stream, sequence_on(*front, state->stream)});
    }
    const Block* unpassed = state->unpassed.front();
    if (unpassed != nullptr) oldest.consider(*unpassed, unpassed->home_point());
  }
  return oldest.point();
}

Bytes BlockIndex::queued_on_others(StreamId but) const noexcept {
  Bytes sum;
  for (const StreamState* state = pending_.front(); state != nullptr; state = state->after) {
    if (state->stream != but) sum += state->unpassed_bytes;
  }
  return sum;
}

std::optional<Point> BlockIndex::enough_before(const Block& block, Bytes need) const {
  constexpr std::size_t kStreams = 8;
  std::size_t streams = 0;
  for (const StreamState* state = pending_.front(); state != nullptr && streams < kStreams;
       state = state->after, ++streams) {
    // Both lists are in the order of their points on this stream.
    const Block* awaiting = state->awaiting.front();
    const Block* unpassed = state->unpassed.front();
    Bytes sum;
    for (std::size_t looked = 0; looked < kLookedAt; ++looked) {
      const Block* next = awaiting;
      if (next == nullptr || (unpassed != nullptr && sequence_on(*unpassed, state->stream) <
                                                         sequence_on(*next, state->stream))) {
        next = unpassed;
      }
      if (next == nullptr) break;
      const std::uint64_t at = sequence_on(*next, state->stream);
      if (at == Block::kUnrecorded) break;
      const bool is_later = state->stream == block.home && at >= block.home_sequence;
      if (is_later || next->moved_at >= block.moved_at) break;
      sum += next->size;
      if (sum >= need) return Point{state->stream, at};
      if (next == awaiting) {
        awaiting = StreamState::Awaiting::next(*awaiting);
      } else {
        unpassed = StreamState::Unpassed::next(*unpassed);
      }
    }
  }
  return std::nullopt;
}

void BlockIndex::pending_streams(std::size_t most, std::vector<StreamId>& pending,
                                 std::vector<StreamId>& unrecorded) {
  for (std::size_t left = std::min(most, pending_.size()); left != 0; --left) {
    StreamState* state = pending_.front();
    // Move it to the end: streams take turns.
    pending_.remove(*state);
    pending_.add(*state);
    if (state->last > state->passed) pending.push_back(state->stream);
    const Block* back = state->awaiting.back();
    if (back != nullptr && sequence_on(*back, state->stream) == Block::kUnrecorded) {
      unrecorded.push_back(state->stream);
    }
  }
}

}  // namespace weir
