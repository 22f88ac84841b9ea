#pragma once

// What must hold before the ranks of a wide run begin.

#include <string>
#include <vector>

#include "trainer/ranks/agree.hpp"
#include "trainer/wide/wide_ranks.hpp"
#include "trainer/wide/wide_settings.hpp"

namespace weir {

/// Throws UsageError unless `ranks` ranks can train with these settings: --parallel is given if
/// there are several, each has a row of each batch, or an input and an output, and what is split
/// over ranks needs no checkpoint.
void require_ranks(const WideSettings& settings, int ranks);

/// Returns what must be equal on every rank: all that decides the numbers of a run, its length, and
/// where it begins. Of a data set it is the checksum, which takes a pass over the training rows.
[[nodiscard]] std::vector<AgreedField> agreed_fields(const WideSettings& settings);

/// Returns what decides the bytes of a step, for a rank with settings that name --parallel.
[[nodiscard]] WideSplit split_of(const WideSettings& settings, const Communicator& ranks);

}  // namespace weir
