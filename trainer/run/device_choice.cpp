#include "trainer/run/device_choice.hpp"

#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/cuda.hpp"

namespace weir {
namespace {

bool is_gpu(std::string_view device) noexcept { return cuda_ordinal(device) >= 0; }

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
  if (is_gpu(found.name)) return found.why;
  return "no GPU answers: " + std::string(first_clause(found.why));
}

}  // namespace

std::string parse_device(std::string_view name, std::string_view text) {
  if (text != "cpu" && text != "auto" && !is_gpu(text)) {
    refuse(name, text, "cpu, cuda, cuda:N for GPU number N, or auto");
  }
  return std::string(text);
}

Setting<std::string> choose_device(const Setting<std::string>& asked) {
  if (asked.value == "auto") {
    const DefaultDevice found = default_device();
    return {found.name, asked.source + ": " + short_reason(found)};
  }
  if (is_gpu(asked.value)) (void)cuda_memory(cuda_ordinal(asked.value));
  return asked;
}

Bytes most_device_memory(std::string_view device) {
  return is_gpu(device) ? cuda_memory(cuda_ordinal(device)) : machine_memory();
}

Bytes default_device_memory(std::string_view device) {
  return is_gpu(device) ? cuda_memory(cuda_ordinal(device)) : default_cpu_memory();
}

MxnetContext mxnet_context(std::string_view device) noexcept {
  return is_gpu(device) ? MxnetContext::kGpu : MxnetContext::kCpu;
}

}  // namespace weir
