#pragma once

/// @file
/// Messages by MPI, whose library is opened at run time: building Weir, and running one rank, needs
/// none.

#include <memory>

#include "trainer/ranks/launch.hpp"
#include "trainer/ranks/transport.hpp"

namespace weir {

/// Opens the library of `launcher` (Open MPI or MPICH) and starts MPI, which may happen once in a
/// process. Throws UsageError if there is no such library, and Error if MPI does not start. Its
/// destructor leaves MPI as it is unless `finish` was called: after a failure, MPI's own end waits
/// for ranks that do not come.
[[nodiscard]] std::unique_ptr<Transport> open_mpi(Launcher launcher);

}  // namespace weir
