// Names and texts of errors.

#include "tests/standin/codes.hpp"
#include "tests/standin/driver/driver.hpp"

extern "C" {

using namespace weir::standin;

CUresult cuGetErrorName(CUresult error, const char** name) {
  return api("cuGetErrorName", Needs::kNothing, [&](Call& /*call*/) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Code* code = find_code(error);
    *name = code == nullptr ? nullptr : code->driver_name;
    return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  return api("cuGetErrorString", Needs::kNothing, [&](Call& /*call*/) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Code* code = find_code(error);
    *text = code == nullptr ? nullptr : code->text;
    return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

}  // extern "C"
