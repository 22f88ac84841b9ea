#include "trainer/run/device_choice.hpp"

#include "kernels/blas/blas.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device_kind.hpp"

namespace weir {
namespace {

/// Returns `text` up to the first colon outside parentheses: the reason without the advice.
std::string_view first_clause(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ':' && depth == 0) return text.substr(0, i);
  }
  return text;
}

/// Returns a reason for the settings line, which must not fill with advice on a machine without a
/// GPU.
std::string short_reason(const DefaultDevice& found) {
  if (!kind_of(parse_device_id(found.name)).on_host) return found.why;
  return "no GPU answers: " + std::string(first_clause(found.why));
}

}  // namespace

std::string parse_device(std::string_view name, std::string_view text) {
  if (text != "auto" && !find_device(text)) refuse(name, text, allowed_devices());
  return std::string(text);
}

Setting<std::string> choose_device(const Setting<std::string>& asked) {
  if (asked.value == "auto") {
    const DefaultDevice found = default_device();
    return {found.name, asked.source + ": " + short_reason(found)};
  }
  (void)most_device_memory(asked.value);  // refuses a device that does not exist
  return asked;
}

Bytes most_device_memory(std::string_view device) {
  const DeviceId id = parse_device_id(device);
  return kind_of(id).most_memory(id.ordinal);
}

Bytes default_device_memory(std::string_view device) {
  const DeviceId id = parse_device_id(device);
  return kind_of(id).default_memory(id.ordinal);
}

void start_blas(std::string_view device) {
  if (!kind_of(parse_device_id(device)).on_host) return;
  reserve_blas_memory();
  set_blas_threads(1);  // the bits of a product depend on the number of threads
}

MxnetContext mxnet_context(std::string_view device) {
  return kind_of(parse_device_id(device)).on_host ? MxnetContext::kCpu : MxnetContext::kGpu;
}

}  // namespace weir
