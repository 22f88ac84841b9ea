#pragma once

// A sparse data set: one libsvm file to train on, one to test on.

#include <string>

#include "kernels/sparse/packed.hpp"
#include "trainer/sparse/sparse_rows.hpp"

namespace weir {

struct SparseSet {
  SparseRows train;
  SparseRows test;  ///< as wide as `train`
};

inline constexpr const char* kSparseTrainFile = "train.libsvm";
inline constexpr const char* kSparseTestFile = "test.libsvm";

/// Reads both files of `directory`. A width of 0 is that of the wider file. Messages begin with
/// `option`. See libsvm.hpp.
[[nodiscard]] SparseSet read_sparse_set(const std::string& option, const std::string& directory,
                                        SparseWidths widths);

}  // namespace weir
