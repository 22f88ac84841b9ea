// Sums numbers on the cpu device, in batches that together are four times the budget.

#include <exception>
#include <iostream>
#include <span>
#include <vector>
#include <weir/allocator/base/error.hpp>
#include <weir/allocator/base/version.hpp>
#include <weir/allocator/pool.hpp>
#include <weir/scheduler/scheduler.hpp>

namespace {

constexpr std::size_t kNumbers = 1 << 20;  // 4 MiB of float32 in a batch
constexpr int kBatches = 16;

float sum_of_batches() {
  weir::Device device = weir::open_device("cpu", {.memory = weir::mib(64)});
  weir::Pool pool{device.memory(), weir::PoolOptions::from_environment()};
  weir::Scheduler scheduler{device, pool, {.budget = weir::mib(16)}};

  weir::Tensor sum = scheduler.empty({1}, "sum");
  scheduler.submit("zero", {.writes = {sum}},
                   [](weir::Stream&, weir::Inputs, weir::Outputs out) { out[0].front() = 0; });

  const std::vector<float> ones(kNumbers, 1.0F);
  for (int i = 0; i < kBatches; ++i) {
    weir::Batch batch = scheduler.begin_batch("sum");  // held back here when memory is short
    weir::Tensor numbers = scheduler.copy_in(ones, {kNumbers}, "numbers");
    scheduler.submit("add", {.reads = {numbers, sum}, .writes = {sum}},
                     [](weir::Stream&, weir::Inputs in, weir::Outputs out) {
                       float total = in[1].front();
                       for (const float number : in[0]) total += number;
                       out[0].front() = total;
                     });
  }
  return scheduler.read(sum).front();  // waits for what `sum` depends on
}

}  // namespace

int main() {
  try {
    const auto sum = static_cast<long>(sum_of_batches());
    std::cout << "weir " << weir::kVersion << ": " << kBatches << " batches, sum " << sum << '\n';
  } catch (const std::exception& error) {
    std::cerr << "consumer: " << error.what() << '\n';
    return weir::exit_code(error);
  }
}
