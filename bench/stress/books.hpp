#pragma once

// Whether a subject's books agree.

#include <string>

#include "tools/replay/subject/subject.hpp"

namespace weir::bench {

/// What is wrong with the books of a subject whose live buffers are `requested` together; empty
/// when nothing is. Of a peer only what it says of itself can be checked.
[[nodiscard]] std::string wrong_with_books(const replay::Subject& subject, Bytes requested);

}  // namespace weir::bench
