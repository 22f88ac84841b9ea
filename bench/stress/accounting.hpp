#pragma once

// Checks a subject's accounting: its byte counts are consistent.

#include <string>

#include "tools/replay/subject/subject.hpp"

namespace weir::bench {

/// Checks a subject's counts against the `requested` bytes of its live buffers. Returns the fault;
/// empty if there is none. A peer is checked only against what it reports itself.
[[nodiscard]] std::string accounting_fault(const replay::Subject& subject, Bytes requested);

}  // namespace weir::bench
