#include "trainer/run/feed.hpp"

#include <algorithm>

#include "trainer/static/static_batch.hpp"

namespace weir {

const FixedPlaces::Place& FixedPlaces::next(Scheduler& scheduler, const Shape& inputs,
                                            const Shape& targets) {
  auto pair = std::ranges::find_if(pairs_, [&](const Pair& known) {
    return known.places[0].inputs.shape() == inputs && known.places[0].targets.shape() == targets;
  });
  if (pair == pairs_.end()) {
    if (pairs_.size() == StaticBatch::kPlans) pairs_.pop_back();
    pair = pairs_.insert(pairs_.end(), Pair{});
    for (Place& place : pair->places) {
      place = {.inputs = scheduler.empty(inputs, "inputs"),
               .targets = scheduler.empty(targets, "targets")};
    }
  }
  std::rotate(pairs_.begin(), pair, pair + 1);
  Pair& used = pairs_.front();
  used.next = (used.next + 1) % used.places.size();
  const Place& place = used.places.at(used.next);
  if (scheduler.policy() == Policy::kBackstop) scheduler.wait(place.inputs);
  return place;
}

void CopiedFeed::next() {
  host_ = reader_.next();
  if (places_ == FeedPlaces::kNew) return;
  place_ = fixed_.next(scheduler_, shape_of(host_.inputs), shape_of(host_.targets));
}

// Borrowed: the reader gets the memory back from `targets`, with the point that ends both copies.
Tensor CopiedFeed::copy(std::span<const float> host, const Tensor& fixed, std::string_view label) {
  if (!fixed) return scheduler_.copy_in(borrowed(host), shape_of(host), label);
  scheduler_.submit(label, {.writes = {fixed}, .stream = StreamRole::kCopyIn},
                    [host](Stream& stream, Inputs /*in*/, Outputs out) {
                      stream.copy(out[0].data(), host.data(), {host.size_bytes()});
                    });
  return fixed;
}

Tensor CopiedFeed::inputs() { return copy(host_.inputs, place_.inputs, "inputs"); }

Tensor CopiedFeed::targets() {
  Tensor targets = copy(host_.targets, place_.targets, "targets");
  reader_.give_back(host_, scheduler_.written(targets));  // the later of the two copies
  return targets;
}

void DrawnFeed::next() {
  index_ = made_++;
  if (places_ == FeedPlaces::kNew) return;
  place_ = fixed_.next(operations_.scheduler(), {shape_.rows, shape_.inputs},
                       {shape_.rows, shape_.targets});
}

Tensor DrawnFeed::inputs() {
  Tensor inputs = place_.inputs
                      ? place_.inputs
                      : operations_.scheduler().empty({shape_.rows, shape_.inputs}, "inputs");
  operations_.draw(inputs, {.seed = seed_, .sequence = generated_sequence(index_)},
                   StreamRole::kCompute2);
  return inputs;
}

Tensor DrawnFeed::targets() {
  Tensor targets = place_.targets
                       ? place_.targets
                       : operations_.scheduler().empty({shape_.rows, shape_.targets}, "targets");
  operations_.fill(targets, kGeneratedTarget, StreamRole::kCompute2);
  return targets;
}

}  // namespace weir
