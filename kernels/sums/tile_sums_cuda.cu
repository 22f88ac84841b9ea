#include <cstddef>
#include <span>

#include "kernels/sums/sum_tiles_cuda.hpp"
#include "kernels/sums/tile_sums_cuda.hpp"

namespace weir::cuda {
namespace {

/// Returns the largest multiple of kSumTile that is at most half of the scratch memory.
std::size_t capacity_of(std::span<const float> scratch) {
  return scratch.size() / 2 / kSumTile * kSumTile;
}

}  // namespace

TileSums::TileSums(const char* name, cudaStream_t stream, std::span<float> scratch)
    : name_(name),
      stream_(stream),
      capacity_(capacity_of(scratch)),
      sums_(scratch.first(capacity_)),
      folded_(scratch.subspan(capacity_)) {}

float* TileSums::next(std::size_t tiles) {
  if (used_ + tiles > capacity_) fold();
  float* const place = sums_.data() + used_;
  used_ += tiles;
  return place;
}

void TileSums::fold() {
  launch_tiles(name_, stream_, ElementTerms{sums_.data()}, true, used_,
               folded_.data() + folded_used_);
  folded_used_ += tiles_of(used_);
  used_ = 0;
}

void TileSums::finish(Finish finish, float* out) {
  std::span<float> terms = sums_.first(used_);
  std::span<float> room = folded_;
  if (folded_used_ > 0) {
    fold();
    terms = folded_.first(folded_used_);
    room = folded_.subspan(folded_used_);
  }
  while (terms.size() > kSumTile) {
    launch_tiles(name_, stream_, ElementTerms{terms.data()}, is_aligned(terms.data()), terms.size(),
                 room.data());
    terms = room.first(tiles_of(terms.size()));
    room = room.subspan(terms.size());
  }
  launch_tiles(name_, stream_, ElementTerms{terms.data()}, is_aligned(terms.data()), terms.size(),
               out, finish);
}

}  // namespace weir::cuda
