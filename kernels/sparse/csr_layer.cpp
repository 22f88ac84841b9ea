#include "kernels/sparse/csr_layer.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/parts/vectors.hpp"
#include "kernels/sparse/weighted_rows.hpp"

namespace weir {
namespace {

/// line = act(line + b).
void finish(std::span<const float> b, std::span<float> line, Activation activation) {
  for (std::size_t j = 0; j < line.size(); ++j) line[j] += b[j];
  if (activation == Activation::kNone) return;
  for (float& value : line) value = value < 0.0F ? 0.0F : value;
}

/// Makes the processor load `count` floats.
void fetch(const float* row, std::size_t count) {
  constexpr std::size_t kLine = 16;
  for (std::size_t j = 0; j < count; j += kLine) __builtin_prefetch(row + j);
}

/// add_weighted_rows for a matrix that is larger than the caches. Which row is next the processor
/// cannot guess, so rows are fetched ahead: as many as fit the first cache beside those in use.
void add_far_rows(WeightedRows list, const float* matrix, std::size_t stride,
                  std::span<float> total) {
  constexpr std::size_t kFetched = 2048;
  constexpr std::size_t kMostRows = 16;
  const std::size_t ahead =
      std::clamp<std::size_t>(kFetched / std::max<std::size_t>(stride, 1), 1, kMostRows);
  const std::size_t count = list.rows.size();
  const auto row = [=](std::size_t e) {
    return matrix + static_cast<std::size_t>(list.rows[e]) * stride;
  };
  auto fetch_until = [&, next = std::size_t{0}](std::size_t end) mutable {
    for (; next < std::min(end, count); ++next) fetch(row(next), total.size());
  };
  fetch_until(ahead);
  for (std::size_t e = 0; e < count; e += kRowsTogether) {
    fetch_until(e + ahead + kRowsTogether);
    const std::size_t together = std::min(kRowsTogether, count - e);
    add_weighted_rows({list.rows.subspan(e, together), list.factors.subspan(e, together)}, matrix,
                      stride, total);
  }
}

}  // namespace

void require_forward(const CsrRows& x, std::span<const float> w, std::span<const float> b,
                     std::span<const float> y) {
  require_elements({"csr_forward", "values"}, x.values.size(), x.indices.size());
  require_matrix({"csr_forward", "w"}, w.size(), x.columns, b.size());
  require_matrix({"csr_forward", "y"}, y.size(), x.rows(), b.size());
}

void csr_forward(const CsrRows& x, std::span<const float> w, std::span<const float> b,
                 std::span<float> y, Activation activation) {
  const std::size_t n = b.size();
  require_forward(x, w, b, y);
  with_vectors([&, n] {
    for (std::size_t i = 0; i < x.rows(); ++i) {
      const std::span<float> line = y.subspan(i * n, n);
      std::ranges::fill(line, 0.0F);
      add_far_rows(entries_of(x, i), w.data(), n, line);
      finish(b, line, activation);
    }
  });
}

}  // namespace weir
