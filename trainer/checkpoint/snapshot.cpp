#include "trainer/checkpoint/snapshot.hpp"

#include <optional>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

/// Copies one tensor after another while there is room.
class Copies {
 public:
  /// `kept` stays free of copies.
  Copies(Scheduler& scheduler, Bytes kept) : scheduler_(scheduler), kept_(kept) {}

  /// Whether so many bytes fit, as far as is known before they are rounded to blocks.
  [[nodiscard]] bool fits(Bytes bytes) const {
    const MemoryInfo memory = scheduler_.memory_info();
    return memory.allocated + bytes + kept_ <= memory.total;
  }

  /// Returns a copy, or nothing.
  [[nodiscard]] std::optional<Tensor> copy(const Tensor& tensor) const {
    Tensor copy = scheduler_.empty(tensor.shape(), "checkpoint");
    try {
      // On the second stream it overlaps the next batch's work up to the first write of the tensor,
      // which waits for it.
      scheduler_.submit("checkpoint",
                        {.reads = {tensor}, .writes = {copy}, .stream = StreamRole::kCompute2},
                        [](Stream& stream, Inputs in, Outputs out) {
                          stream.copy(out[0].data(), in[0].data(), {in[0].size_bytes()});
                        });
    } catch (const OutOfMemory&) {
      return std::nullopt;  // no block is that large
    }
    if (!fits({})) return std::nullopt;  // its block was larger than it
    return copy;
  }

 private:
  Scheduler& scheduler_;
  const Bytes kept_;
};

}  // namespace

std::vector<Section> sections_of(const std::vector<NamedTensor>& tensors) {
  std::vector<Section> sections;
  for (const auto& [name, tensor] : tensors) {
    Section& section = sections.emplace_back(Section{name, {}});
    const Shape& shape = tensor.shape();
    for (std::size_t i = 0; i < shape.dimensions(); ++i) section.extents.push_back(shape[i]);
  }
  return sections;
}

Snapshot take_snapshot(Scheduler& scheduler, const std::vector<NamedTensor>& tensors,
                       std::string_view beside) {
  Snapshot snapshot{.tensors = {}, .held = tensors.size()};
  for (const NamedTensor& named : tensors) snapshot.tensors.push_back(named.tensor);
  const std::optional<Bytes> footprint = scheduler.expected_footprint(beside);
  if (!footprint) return snapshot;
  const Copies copies(scheduler, *footprint * 2);
  Bytes all;
  std::size_t first = tensors.size();
  while (first > 0 && copies.fits(all + tensors[first - 1].tensor.shape().bytes())) {
    all += tensors[--first].tensor.shape().bytes();
  }
  if (first == tensors.size()) return snapshot;
  const Batch batch = scheduler.begin_batch("checkpoint", {.hint = all});
  while (snapshot.held > first) {
    std::optional<Tensor> copy = copies.copy(snapshot.tensors[snapshot.held - 1]);
    if (!copy) break;
    snapshot.tensors[--snapshot.held] = *std::move(copy);
  }
  return snapshot;
}

}  // namespace weir
