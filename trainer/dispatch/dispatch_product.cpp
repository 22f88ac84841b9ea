#include "trainer/dispatch/dispatch_product.hpp"

#include <chrono>
#include <utility>

#include "kernels/blas/blas.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace weir {
namespace {

/// The BLAS gets its memory before a device starts threads: if OpenBLAS cannot start its own
/// threads afterwards, it may wait for them forever.
Device open_behind_blas(const std::string& device) {
  reserve_blas_memory();
  set_blas_threads(1);
  return open_device(device);
}

}  // namespace

Product::Product(const std::string& device, std::uint64_t rows, std::stop_token stop)
    : rows_(rows),
      stop_(std::move(stop)),
      device_(open_behind_blas(device)),
      pool_(device_.memory()),
      scheduler_(device_, pool_, {.policy = Policy::kUnbounded}),
      a_(scheduler_.empty({rows, rows}, "a")),
      b_(scheduler_.empty({rows, rows}, "b")) {
  scheduler_.submit("fill", {.writes = {a_}},
                    [](Stream&, Inputs, Outputs out) { fill(out[0], 0.5F); });
  (void)run(1);
}

void Product::issue() {
  scheduler_.submit("dot", {.reads = {a_}, .writes = {b_}},
                    [this](Stream&, Inputs in, Outputs out) {
                      if (stop_.stop_requested()) return;
                      gemm({.m = rows_, .n = rows_, .k = rows_}, in[0], in[0], out[0]);
                    });
}

Product::Times Product::run(int calls) {
  using Clock = std::chrono::steady_clock;
  const auto since = [start = Clock::now()] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Times times;
  for (int i = 0; i < calls; ++i) issue();
  times.returned = since();
  scheduler_.wait(b_);
  times.completed = since();
  return times;
}

std::optional<ProductRound> Product::round() {
  const Times one = run(1);
  const Times many = run(kMany);
  if (stop_.stop_requested()) return std::nullopt;
  return ProductRound{.returned = one.returned,
                      .completed = one.completed,
                      .many_returned = many.returned,
                      .many_completed = many.completed};
}

}  // namespace weir
