// The programs of docs/using-the-library.md that need a GPU or show a part: what stands between
// two marks is on the page (Docs.ProgramShownIsTheOneThatIsTested).

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "allocator/adapt/allocation.hpp"
#include "scheduler/batch_gate.hpp"
#include "scheduler/device/standin_fixture.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "scheduler/device/user_streams_cuda.hpp"
#include "scheduler/scheduler.hpp"

namespace weir {
namespace {

class Examples : public testing::StandinTest {};

std::vector<std::int64_t> labels_of_the_second_half(weir::Scheduler& scheduler,
                                                    const std::vector<weir::BFloat16>& rows,
                                                    const std::vector<std::int64_t>& labels) {
  // begin views
  const std::size_t n = labels.size();
  weir::Tensor y = scheduler.copy_in(labels, {n}, "labels");  // int64, as the vector
  weir::Tensor x = scheduler.empty({n, 64}, weir::DType::kBFloat16, "rows");
  scheduler.write(x, 0, rows);

  weir::Tensor half = x.rows(n / 2, n / 2);  // the same memory, no copy
  scheduler.submit("double", {.reads = {half}, .writes = {half}},
                   [](weir::Stream& stream, weir::Inputs in, weir::Outputs out) {
                     std::span<const weir::BFloat16> from = in.as<weir::BFloat16>(0);
                     std::span<std::byte> to = out.bytes(0);  // whatever the dtype
                     stream.copy(to.data(), from.data(), {from.size_bytes()});
                   });
  return scheduler.read<std::int64_t>(y.rows(n / 2, n / 2));
  // end views
}

TEST_F(Examples, ViewsAndDTypes) {
  Device device = open_device("cuda:0");
  Pool pool(device.memory());
  Scheduler scheduler(device, pool);
  const std::vector<BFloat16> rows(std::size_t{8} * 64);
  EXPECT_EQ(labels_of_the_second_half(scheduler, rows, {1, 2, 3, 4, 5, 6, 7, 8}),
            (std::vector<std::int64_t>{5, 6, 7, 8}));
}

void run_on(cudaStream_t stream, void* mine, std::size_t bytes) {
  // begin streams
  weir::Device device = weir::open_cuda_device(0, {.compute = stream});
  weir::Pool pool{device.memory()};
  weir::Scheduler scheduler{device, pool};

  cudaMemsetAsync(mine, 7, bytes, stream);  // the program's own work
  weir::Tensor x = scheduler.empty({bytes}, weir::DType::kUInt8, "x");
  scheduler.submit("take", {.writes = {x}}, [=](weir::Stream& s, weir::Inputs, weir::Outputs out) {
    // weir::cuda_stream(s) == stream: behind the memset, without an event
    s.copy(out.bytes(0).data(), mine, {bytes});
  });
  // end streams
  EXPECT_EQ(scheduler.read<std::uint8_t>(x), std::vector<std::uint8_t>(bytes, 7));
}

TEST_F(Examples, AStreamOfTheProgram) {
  const testing::UserStream stream;
  void* mine = nullptr;
  ASSERT_EQ(cudaMalloc(&mine, 4096), cudaSuccess);
  run_on(stream.get(), mine, 4096);
  EXPECT_EQ(cudaFree(mine), cudaSuccess);
}

std::uint64_t train(cudaStream_t stream, cudaStream_t loader, const void* host, int steps) {
  // begin gate
  weir::CudaUpstream upstream{0, weir::mib(64)};
  weir::CudaProgress progress{0};
  const std::array streams{progress.add(stream), progress.add(loader)};
  const auto [compute, copies] = streams;
  {
    weir::Pool pool{{upstream, progress}};
    weir::BatchGate gate{pool, progress, streams};
    for (int step = 0; step < steps; ++step) {
      weir::GatedBatch batch = gate.begin("train");  // held back here, if anywhere
      void* x = batch.allocate(weir::mib(16), copies, "x");
      cudaMemcpyAsync(x, host, weir::mib(16).count, cudaMemcpyHostToDevice, loader);
      progress.make_wait(compute, progress.record(copies));
      pool.record_use(x, compute);
      cudaMemsetAsync(x, 0, weir::mib(16).count, stream);  // its kernels
      gate.deallocate(x, copies);
    }  // the batch is submitted; it ends when both streams have passed this place
  }
  for (const weir::StreamId id : streams) progress.remove(id);  // then the streams may go
  // end gate
  return weir_standin_peak(0);
}

TEST_F(Examples, AdmissionAlone) {
  const testing::UserStream stream;
  const testing::UserStream loader;
  const std::vector<std::byte> host(mib(16).count);
  EXPECT_LE(train(stream.get(), loader.get(), host.data(), 20), mib(64).count);
}

}  // namespace
}  // namespace weir
