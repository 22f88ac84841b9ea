#pragma once

/// @file
/// Who started this process as one of several ranks: read from variables, which every launcher
/// sets.

#include <cstdint>
#include <string>

#include "allocator/base/setting.hpp"

namespace weir {

/// What started the ranks.
enum class Launcher : std::uint8_t {
  kNone,      ///< one rank, started by itself
  kOpenMpi,   ///< Open MPI's mpirun
  kMpich,     ///< MPICH's mpirun, or another one that sets PMI_RANK
  kTorchrun,  ///< torchrun, or the same variables set by hand
};

/// One rank's place.
struct Launch {
  Launcher launcher = Launcher::kNone;  ///< who started it
  int rank = 0;                         ///< from 0 on
  int size = 1;                         ///< number of ranks
  int local_rank = 0;                   ///< among the ranks of this machine: the GPU's number
  std::string address{};                ///< torchrun: where rank 0 can be reached
  std::uint16_t port = 0;               ///< torchrun: on which port rank 0 listens
};

/// Reads the variables:
/// @verbatim
///   Open MPI   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK    Open MPI FAQ, "Running MPI jobs" (11)
///   MPICH      PMI_RANK, PMI_SIZE, MPI_LOCALRANKID         set by Hydra, MPICH 4.0.2
///   torchrun   RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT       pytorch.org, torchrun
/// @endverbatim
/// The first line whose rank and size are set decides. Where torchrun itself serves MASTER_PORT
/// (TORCHELASTIC_USE_AGENT_STORE=True), rank 0 listens on the next port. Throws UsageError for a
/// value that is no such number, or a rank that is not below the size.
[[nodiscard]] Launch find_launch(const Environment& environment = process_environment());

}  // namespace weir
