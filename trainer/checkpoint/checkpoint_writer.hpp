#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "tools/program/output_file.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"

namespace weir {

/// Fills `out` with the elements of a section from `first` on. Called for all sections in order,
/// and for each from its first element to its last.
using ReadPiece = std::function<void(std::size_t section, std::size_t first, std::span<float> out)>;

/// Replaces the file's contents by a checkpoint, holding one chunk (4 MiB) of it in memory. Throws
/// what `read` throws, and UsageError if the file cannot be written; the old contents stay then.
void write_checkpoint(OutputFile& file, const CheckpointHeader& header, const ReadPiece& read);

}  // namespace weir
