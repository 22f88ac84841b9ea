#include "trainer/static/batch_plan.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>
#include <utility>

#include "scheduler/operation.hpp"

namespace weir {
namespace {

bool share_a_step(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Places tensors in this order, each at the lowest free offset.
Layout place(std::span<const Lifetime> tensors, std::span<const std::size_t> order,
             std::size_t alignment) {
  const auto aligned = [alignment](std::size_t at) {
    return (at + alignment - 1) / alignment * alignment;
  };
  Layout layout{.offsets = std::vector<std::size_t>(tensors.size()), .size = 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (!share_a_step(tensors[i], tensors[other])) continue;
      if (offset + tensors[i].size <= layout.offsets[other]) break;  // fits before it
      offset = std::max(offset, aligned(layout.offsets[other] + tensors[other].size));
    }
    layout.offsets[i] = offset;
    layout.size = std::max(layout.size, offset + tensors[i].size);
    placed.insert(std::ranges::upper_bound(placed, offset, {},
                                           [&](std::size_t p) { return layout.offsets[p]; }),
                  i);
  }
  return layout;
}

/// In elements: 256 bytes, what a GPU's allocations have and vector loads need.
constexpr std::size_t kAlignment = 64;

}  // namespace

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

Layout plan_layout(std::span<const Lifetime> tensors, std::size_t alignment) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return tensors[i].first; });
  Layout by_first_use = place(tensors, order, alignment);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return tensors[i].size; });
  Layout by_size = place(tensors, order, alignment);
  return by_size.size <= by_first_use.size ? std::move(by_size) : std::move(by_first_use);
}

BatchPlan::BatchPlan(const BatchShapeList& list, std::uint64_t its_number)
    : number(its_number), shape(list) {
  std::vector<Lifetime> inner;
  for (const ListedTensor& tensor : shape.tensors) {
    if (!tensor.inner) continue;
    inner.push_back({.size = tensor.shape.elements(), .first = tensor.first, .last = tensor.last});
  }
  const Layout layout = plan_layout(inner, kAlignment);
  arena = layout.size;
  std::size_t next_inner = 0;
  for (std::uint32_t i = 0; i < shape.tensors.size(); ++i) {
    const ListedTensor& tensor = shape.tensors[i];
    if (tensor.inner) {
      places.push_back({.in = Place::In::kArena, .at = layout.offsets[next_inner++]});
      continue;
    }
    if (tensor.read_first) {
      places.push_back({.in = Place::In::kReads, .at = reads.size()});
    } else {
      places.push_back({.in = Place::In::kWrites, .at = writes.size() + (arena != 0 ? 1 : 0)});
    }
    if (tensor.read_first) reads.push_back(i);
    if (tensor.written) writes.push_back(i);
  }
}

PlannedBatch::PlannedBatch(std::shared_ptr<const BatchPlan> plan, BatchWork work,
                           std::shared_ptr<BatchGraphs> graphs)
    : plan_(std::move(plan)), work_(std::move(work)), graphs_(std::move(graphs)) {
  tensors_.reserve(plan_->places.size());
}

void PlannedBatch::run(Stream& stream, Inputs in, Outputs out) {
  for (std::size_t i = 0; i < plan_->places.size(); ++i) {
    const BatchPlan::Place& place = plan_->places[i];
    const std::size_t elements = plan_->shape.tensors[i].shape.elements();
    switch (place.in) {
      case BatchPlan::Place::In::kArena:
        tensors_.push_back({out[0].data() + place.at, elements});
        break;
      case BatchPlan::Place::In::kReads:
        // Const for what only reads; the scheduler knows what is written as well.
        tensors_.push_back({const_cast<float*>(in[place.at].data()), elements});
        break;
      case BatchPlan::Place::In::kWrites:
        tensors_.push_back({out[place.at].data(), elements});
        break;
    }
  }
  if (graphs_ == nullptr) return call_all(stream);
  GraphKey key{.plan = plan_->number, .addresses = {}, .constants = work_.constants};
  for (const View& view : tensors_) key.addresses.push_back(view.data);
  launched_ = graphs_->launch(stream, std::move(key), [&] { call_all(stream); });
}

void PlannedBatch::call_all(Stream& stream) {
  std::vector<View> in;
  std::vector<View> out;
  for (std::size_t i = 0; i < work_.kernels.size(); ++i) {
    const ListedOperation& operation = plan_->shape.operations[i];
    in.clear();
    out.clear();
    for (const std::uint32_t number : operation.reads) in.push_back(tensors_[number]);
    for (const std::uint32_t number : operation.writes) out.push_back(tensors_[number]);
    try {
      work_.kernels[i](stream, Inputs(in), Outputs(out));
    } catch (const std::exception& error) {
      throw OperationError("operation '" + operation.name + "': " + error.what(),
                           std::current_exception());
    }
  }
}

}  // namespace weir
