#pragma once

// What a wide run has in common with its checkpoint, and with the other ranks before they begin.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/ranks/agree.hpp"
#include "trainer/wide/wide_network.hpp"
#include "trainer/wide/wide_ranks.hpp"
#include "trainer/wide/wide_settings.hpp"

namespace weir {

/// Returns what decides the numbers of a run: a run with others cannot go on from its checkpoint.
/// Of a data set it is the checksum, which takes a pass over the training rows.
[[nodiscard]] Figures checkpoint_settings(const WideSettings& settings);
/// Returns the state after `done` batches of the whole training: the parameters, their moments, the
/// optimizer's state, and the number of batches, which is also the readers' place.
[[nodiscard]] CheckpointState checkpoint_state(Figures settings, const WideNetwork& network,
                                               std::uint64_t done);
/// The name of that number.
inline constexpr const char* kBatchPosition = "batch";

/// Returns the number of these rows and their checksum.
[[nodiscard]] std::string describe_rows(const SparseRows& rows);

/// Parses `200` (batches), `5min` (or `30s`, `2h`), or both: `200,5min`.
[[nodiscard]] CheckpointSchedule parse_every(std::string_view name, std::string_view text);
/// Returns a text that parse_every reads.
[[nodiscard]] std::string format_every(const CheckpointSchedule& schedule);

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
