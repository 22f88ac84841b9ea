#pragma once

/// @file
/// Puts together what several ranks found in their parts of the classes. `parts` has the results of
/// each part for all rows, one part after the other, in the order of the classes.
///
/// The order of additions is that of the parts, with our own exponential, so every device gives the
/// same bits. Both throw UsageError and leave the output unchanged unless `parts` is a whole number
/// of parts, at least one. Thread-safe for disjoint outputs.

#include <cstddef>
#include <span>

namespace weir {

/// statistics [rows x kSoftmaxStatistics], overwritten, from parts [n x rows x kSoftmaxStatistics].
/// With M_p and S_p of part p:
///
///   M = max_p M_p,   S = sum_p S_p exp(M_p - M),   and the sums of the rest
void merge_softmax_statistics(std::span<const float> parts, std::span<float> statistics);

/// hits[0] = the rows whose largest logit, of all parts, is one of their labels; parts
/// [n x rows x kTopLogit] as top_logits makes them.
void merge_hits(std::span<const float> parts, std::size_t rows, std::span<float> hits);

/// Throws UsageError unless `parts` are one or more of `floats` elements. Names `function`.
void require_parts(const char* function, std::span<const float> parts, std::size_t floats);

}  // namespace weir
