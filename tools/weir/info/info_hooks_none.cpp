// The table of hooks, in a build without CUDA's headers.

#include "allocator/base/error.hpp"
#include "tools/weir/info/info.hpp"

namespace weir::cli {

std::string hooks_text(bool /*wide*/) {
  throw UsageError("this build has no hooks: it was made without CUDA's headers");
}

}  // namespace weir::cli
