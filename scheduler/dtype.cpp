#include "scheduler/dtype.hpp"

#include <string>

#include "allocator/base/error.hpp"

namespace weir {

std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUInt8:
      break;
  }
  return "uint8";
}

void refuse_dtype(std::string_view what, DType has, DType asked) {
  throw UsageError(std::string(what) + " has elements of " + std::string(to_string(has)) +
                   ", used as " + std::string(to_string(asked)));
}

}  // namespace weir
