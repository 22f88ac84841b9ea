#pragma once

#include <string>

#include "allocator/base/bytes.hpp"

namespace weir {

/// Returns `1.5GiB`: like format_bytes, but one word, as a flag takes it.
[[nodiscard]] std::string format_compact(Bytes bytes);

}  // namespace weir
