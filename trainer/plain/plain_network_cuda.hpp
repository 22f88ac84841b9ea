#pragma once

// The model of mlp.hpp in memory allocated once, trained by kernels called in order on one stream.

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "trainer/plain/plain_memory_cuda.hpp"
#include "trainer/run/settings.hpp"

namespace weir {

class PlainNetwork {
 public:
  /// Allocates its memory and enqueues its initialization. `memory` must outlive it. Throws
  /// CudaError.
  PlainNetwork(PlainMemory& memory, cudaStream_t stream, const TrainSettings& settings);

  /// Enqueues a batch: forward, loss, backward, step. The bits depend on this order, which is that
  /// of Mlp and Operations.
  void train(std::span<const float> inputs, std::span<const float> targets);

  /// Returns them in the order of Mlp::read_parameters. Waits for the stream.
  [[nodiscard]] std::vector<std::vector<float>> read_parameters();
  /// Returns the sum of the batches' losses. Waits for the stream.
  [[nodiscard]] float read_loss_total();

 private:
  struct Parameter {
    std::span<float> value;
    std::span<float> gradient;
    std::span<float> velocity;  ///< empty without momentum
  };
  struct Layer {
    DenseShape shape;
    Activation activation;
    Parameter weights;
    Parameter bias;
    std::span<float> output;
    std::span<float> output_gradient;
  };

  [[nodiscard]] Parameter parameter(PlainMemory& memory, std::size_t count) const;
  void backward(std::span<const float> inputs);
  void step(const Parameter& parameter);
  [[nodiscard]] std::vector<float> read(std::span<const float> values) const;

  const cudaStream_t stream_;
  const float learning_rate_;
  const float momentum_;
  cuda::CublasHandle blas_;
  const std::span<float> workspace_;
  const std::span<float> loss_;
  const std::span<float> loss_total_;
  std::vector<Layer> layers_;
};

}  // namespace weir
