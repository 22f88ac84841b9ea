#pragma once

// A sparse data set: one libsvm file to train on, one to test on. Reads one, or writes a made one,
// so that sparse training can be tried and measured without one.

#include <cstdint>
#include <stop_token>
#include <string>

#include "kernels/sparse/packed.hpp"
#include "trainer/sparse/sparse_source.hpp"

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

/// Writes the two files into `directory`, which is made if needed: `rows` rows to
/// train on, and a tenth as many, at least one, to test on. Each file is written whole or not at
/// all, row by row: memory does not grow with `rows`. The same arguments give the same bytes, and
/// the batches of generated_rows with the same shape and seed have the same rows.
///
/// Throws UsageError, which names `option`, if the directory or a file cannot be written, or if
/// there is no row, or more than kMostSparse / 2. Throws Cancelled soon after `stop` is requested,
/// and leaves no part of a file then.
void make_sparse(const std::string& option, const std::string& directory, std::uint64_t rows,
                 const SparseDraw& draw, const std::stop_token& stop = {});

}  // namespace weir
