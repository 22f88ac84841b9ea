#pragma once

#include <string>

#include "allocator/base/bytes.hpp"

namespace weir {

/// `1.5GiB`: as format_bytes, in one word, as a flag takes it.
[[nodiscard]] std::string format_compact(Bytes bytes);

}  // namespace weir
