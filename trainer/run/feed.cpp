#include "trainer/run/feed.hpp"

namespace weir {

Tensor CopiedFeed::inputs() {
  return scheduler_.copy_in(host_.inputs, {host_.rows, host_.inputs.size() / host_.rows}, "inputs");
}

Tensor CopiedFeed::targets() {
  Tensor targets =
      scheduler_.copy_in(host_.targets, {host_.rows, host_.targets.size() / host_.rows}, "targets");
  reader_.give_back(host_, scheduler_.written(targets));  // the later of the two copies
  return targets;
}

Tensor DrawnFeed::inputs() {
  return operations_.drawn({shape_.rows, shape_.inputs},
                           {.seed = seed_, .sequence = generated_sequence(index_)}, "inputs",
                           StreamRole::kCompute2);
}

Tensor DrawnFeed::targets() {
  return operations_.filled({shape_.rows, shape_.targets}, kGeneratedTarget, "targets",
                            StreamRole::kCompute2);
}

}  // namespace weir
