// The table of hooks, in a build without a toolkit.

#include "allocator/base/error.hpp"
#include "tools/weir/info/info.hpp"

namespace weir::cli {

std::string hooks_text(bool /*wide*/) {
  throw UsageError("this build has no hooks: it was made without a CUDA toolkit");
}

}  // namespace weir::cli
