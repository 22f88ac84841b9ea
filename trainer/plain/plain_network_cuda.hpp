#pragma once

// The model of mlp.hpp in memory that is taken once, trained by calling the kernels one after the
// other on one stream.

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "kernels/blas/blas_cuda.hpp"
#include "kernels/dense.hpp"
#include "trainer/plain/plain_memory_cuda.hpp"
#include "trainer/run/settings.hpp"

namespace weir {

class PlainNetwork {
 public:
  /// Takes its memory and enqueues what sets it. `memory` outlives it; CudaError.
  PlainNetwork(PlainMemory& memory, cudaStream_t stream, const TrainSettings& settings);

  /// Enqueues a batch: forward, loss, backward, step. In the order of Mlp and Operations: the bits
  /// depend on it.
  void train(std::span<const float> inputs, std::span<const float> targets);

  /// In the order of Mlp::read_parameters. Waits for the stream.
  [[nodiscard]] std::vector<std::vector<float>> read_parameters();
  /// The sum of the batches' losses. Waits for the stream.
  [[nodiscard]] float read_loss_total();

 private:
  /// A weight or a bias.
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
