#include "trainer/wide/placed_layer.hpp"

#include <utility>

namespace weir {

PackedTensor PlacedLayer::with_labels(PackedTensor batch) {
  batch.label_words = link_.copy_to(rest_, sparse_.labels_alone(batch), "labels");
  return batch;
}

Tensor PlacedLayer::forward(const PackedTensor& batch, const Tensor& w, const Tensor& b) {
  const Tensor h = sparse_.layer(batch, w, b, Activation::kRelu);
  return link_.copy_to(rest_, h, "activations");
}

void PlacedLayer::update(const Parameter& w, const Parameter& b, const PackedTensor& batch,
                         const Tensor& dy, const Tensor& db, const Tensor& state,
                         UpdatedRows rows) {
  // All copies before the first change: no wait for memory can end a step in its middle.
  const Tensor dy_here = fetch(dy, "activation gradients");
  const Tensor db_here = fetch(db, "b0 gradient");
  optimizer_.follow(fetch(state, "optimizer state"));
  optimizer_.update_rows(w, batch, dy_here, rows);
  optimizer_.update(b, db_here);
}

}  // namespace weir
