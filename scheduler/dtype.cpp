#include "scheduler/dtype.hpp"

#include <array>
#include <string>

#include "allocator/base/error.hpp"

namespace weir {

void refuse_dtype(std::string_view what, DType has, DType asked) {
  throw UsageError(std::string(what) + " has elements of " + std::string(to_string(has)) +
                   ", used as " + std::string(to_string(asked)));
}

}  // namespace weir
