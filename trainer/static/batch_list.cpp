#include "trainer/static/batch_list.hpp"

#include <algorithm>
#include <utility>

namespace weir {

std::uint32_t BatchList::number_of(const Tensor& tensor, bool reads) {
  const auto known = std::ranges::find(tensors_, tensor);
  const auto number = static_cast<std::uint32_t>(known - tensors_.begin());
  if (known == tensors_.end()) {
    shape_.tensors.push_back({.shape = tensor.shape(), .first = size_, .read_first = reads});
    tensors_.push_back(tensor);
  }
  ListedTensor& listed = shape_.tensors[number];
  listed.last = size_;
  listed.written = listed.written || !reads;
  return number;
}

void BatchList::add(std::string_view name, const Uses& uses, Kernel&& kernel, Constants constants,
                    CallSite where) {
  for (const TensorList& list : {uses.reads, uses.writes}) {
    for (const Tensor& tensor : list) (void)tensor.shape();  // refuses before anything is noted
  }
  if (size_ == shape_.operations.size()) shape_.operations.emplace_back();
  ListedOperation& operation = shape_.operations[size_];
  operation.name = name;
  operation.reads.clear();
  operation.writes.clear();
  for (const Tensor& tensor : uses.reads) operation.reads.push_back(number_of(tensor, true));
  for (const Tensor& tensor : uses.writes) operation.writes.push_back(number_of(tensor, false));
  work_.kernels.push_back(std::move(kernel));
  work_.constants.insert(work_.constants.end(), constants);
  places_.push_back(where);
  ++size_;
}

bool BatchList::uses_any(const Uses& uses) const {
  return std::ranges::any_of(tensors_, [&](const Tensor& mine) {
    return std::ranges::count(uses.reads, mine) + std::ranges::count(uses.writes, mine) != 0;
  });
}

const BatchShapeList& BatchList::shape() {
  shape_.operations.resize(size_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    shape_.tensors[i].inner = !shape_.tensors[i].read_first && tensors_[i].handles() == 1;
  }
  return shape_;
}

BatchWork BatchList::take_work() { return std::exchange(work_, {}); }

void BatchList::submit_to(Scheduler& scheduler) {
  std::vector<Tensor> reads;
  std::vector<Tensor> writes;
  for (std::size_t i = 0; i < size_; ++i) {
    const ListedOperation& operation = shape_.operations[i];
    for (const std::uint32_t number : operation.reads) reads.push_back(tensors_[number]);
    for (const std::uint32_t number : operation.writes) writes.push_back(tensors_[number]);
    scheduler.submit(operation.name, {.reads = reads, .writes = writes},
                     std::move(work_.kernels[i]), places_[i]);
    reads.clear();
    writes.clear();
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (shape_.tensors[t].last == i) tensors_[t] = {};
    }
  }
}

void BatchList::clear() noexcept {
  size_ = 0;
  shape_.tensors.clear();
  tensors_.clear();
  places_.clear();
  work_ = {};
}

}  // namespace weir
