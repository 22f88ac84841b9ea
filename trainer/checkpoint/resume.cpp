#include "trainer/checkpoint/resume.hpp"

namespace weir {

void resume(const CheckpointReader& file, Scheduler& scheduler, const CheckpointState& run) {
  file.require(run.settings, sections_of(run.tensors));
  file.read([&](std::size_t section, std::size_t first, std::span<const float> elements) {
    const Tensor& tensor = run.tensors[section].tensor;
    scheduler.write(tensor, first, borrowed(elements));
    scheduler.wait(tensor);  // the next chunk is read to the same memory
  });
}

}  // namespace weir
