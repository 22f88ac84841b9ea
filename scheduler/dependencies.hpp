#pragma once

// Which earlier work an operation must wait for. Reads between two writes may overlap; a write
// waits for the reads before it; one stream runs in order anyway. Pure functions of a tensor's
// history; the scheduler calls them under its order lock.

#include <algorithm>
#include <array>
#include <cstdint>

#include "scheduler/device/stream.hpp"

namespace weir {

/// A tensor's last uses, as sequences of the streams.
struct AccessHistory {
  std::uint64_t version = 0;  ///< number of writes
  StreamRole writer = StreamRole::kCompute;
  std::uint64_t write_sequence = 0;  ///< of the last write; meaningless at version 0
  std::array<std::uint64_t, kStreamRoles> read_sequences{};  ///< since that write; 0: none
};

/// For each stream, the sequence that must be passed first; 0: none.
using Waits = std::array<std::uint64_t, kStreamRoles>;

constexpr void wait_to_read(const AccessHistory& history, StreamRole role, Waits& waits) {
  if (history.version == 0 || history.writer == role) return;
  std::uint64_t& wait = waits.at(index_of(history.writer));
  wait = std::max(wait, history.write_sequence);
}

constexpr void wait_to_write(const AccessHistory& history, StreamRole role, Waits& waits) {
  wait_to_read(history, role, waits);
  for (const StreamRole reader : kAllRoles) {
    if (reader == role) continue;
    std::uint64_t& wait = waits.at(index_of(reader));
    wait = std::max(wait, history.read_sequences.at(index_of(reader)));
  }
}

constexpr void note_read(AccessHistory& history, StreamRole role, std::uint64_t sequence) {
  history.read_sequences.at(index_of(role)) = sequence;
}

constexpr void note_write(AccessHistory& history, StreamRole role, std::uint64_t sequence) {
  ++history.version;
  history.writer = role;
  history.write_sequence = sequence;
  history.read_sequences = {};
}

}  // namespace weir
