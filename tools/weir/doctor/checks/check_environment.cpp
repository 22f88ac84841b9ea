// Variables of others that change what a GPU program, or its allocator, does.

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "allocator/base/error.hpp"
#include "tools/weir/doctor/checks/checks.hpp"
#include "tools/weir/run/framework_allocator.hpp"
#include "tools/weir/run/frameworks.hpp"

namespace weir::cli::doctor {
namespace {

std::string value_of(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

/// The line that `weir run` prints at its start.
void add_allocators(Findings& found, const EnvironmentFacts& facts) {
  const Environment environment = environment_of(facts.variables);
  try {
    const Setting<AllocatorMode> mode = allocator_mode(environment);
    const Setting<preload::TorchWay> torch = torch_way(mode, environment);
    found.ok("allocator",
             choose_allocator({.mode = mode.value, .torch = torch.value, .plugs = facts.plugs},
                              environment)
                 .line);
  } catch (const UsageError&) {
    return;  // the group `settings` has it
  }
}

void add_torch(Findings& found, const Variables& variables) {
  const std::string older = value_of(variables, kTorchOlder);
  const std::string newer = value_of(variables, kTorchNewer);
  if (variables.contains(kTorchOlder) && variables.contains(kTorchNewer) && older != newer) {
    found.warn("torch-settings",
               std::string(kTorchOlder) + "='" + older + "' hides " + kTorchNewer + "='" + newer +
                   "': PyTorch reads the older name where it is set, even if it is empty",
               std::string("unset ") + kTorchOlder + ", or give both the same value");
  }
  if (variables.contains("PYTORCH_NO_CUDA_MEMORY_CACHING")) {
    found.warn("torch-settings",
               "PYTORCH_NO_CUDA_MEMORY_CACHING is set, whatever its value: PyTorch requests and "
               "frees each tensor by itself, and the plug is not used",
               "unset PYTORCH_NO_CUDA_MEMORY_CACHING");
  }
}

void add_jax_and_tensorflow(Findings& found, const Variables& variables) {
  const std::string allocator = value_of(variables, "XLA_PYTHON_CLIENT_ALLOCATOR");
  const std::string preallocate = value_of(variables, "XLA_PYTHON_CLIENT_PREALLOCATE");
  if (allocator == "cuda_async" && preallocate != "false" && preallocate != "0") {
    found.warn(
        "jax-settings",
        "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async without XLA_PYTHON_CLIENT_PREALLOCATE=false: "
        "JAX takes three quarters of the budget at its start",
        "set XLA_PYTHON_CLIENT_PREALLOCATE=false");
  }
  const std::string way = value_of(variables, "TF_GPU_ALLOCATOR");
  if (!way.empty() && way != "cuda_malloc_async") {
    found.warn("tensorflow-settings",
               "TF_GPU_ALLOCATOR='" + way + "' is no allocator that Weir knows",
               "unset TF_GPU_ALLOCATOR, or set it to cuda_malloc_async");
  }
}

/// Whether a preloaded file is a copy of libweir.so.
bool is_weir(std::string_view path) { return path.substr(path.rfind('/') + 1) == "libweir.so"; }

/// Returns the files that LD_PRELOAD names.
std::vector<std::string_view> files_in(std::string_view preload) {
  std::vector<std::string_view> files;
  while (!preload.empty()) {
    const std::size_t end = std::min(preload.find_first_of(": "), preload.size());
    if (end != 0) files.push_back(preload.substr(0, end));
    preload.remove_prefix(std::min(end + 1, preload.size()));
  }
  return files;
}

bool names_any(std::string_view path, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [path](auto part) { return path.find(part) != std::string_view::npos; });
}

void add_missing_preloads(Findings& found, const EnvironmentFacts& facts) {
  for (const std::string& missing : facts.missing_preloads) {
    found.warn(
        "preloaded",
        "LD_PRELOAD names " + missing + ", which is not there: the loader says so for each program",
        "take it out of LD_PRELOAD");
  }
}

void add_preloads(Findings& found, const EnvironmentFacts& facts) {
  const std::string preload = value_of(facts.variables, "LD_PRELOAD");
  const std::vector<std::string_view> files = files_in(preload);
  if (files.empty()) return;
  add_missing_preloads(found, facts);
  const auto weir = std::ranges::find_if(files, is_weir);
  if (names_any(preload, {"libasan", "libtsan"})) {
    found.warn("preloaded",
               "LD_PRELOAD='" + preload +
                   "' has a sanitizer, which must be the first library; weir run puts libweir.so "
                   "before it",
               "ASAN_OPTIONS=verify_asan_link_order=0, or no sanitizer under Weir");
  } else if (weir != files.end() && weir != files.begin()) {
    found.warn(
        "preloaded",
        "LD_PRELOAD='" + preload +
            "' has libweir.so behind another library, whose CUDA functions would hide Weir's",
        "name libweir.so first, or use weir run, which does");
  } else if (weir != files.end()) {
    found.ok("preloaded", "LD_PRELOAD=" + preload +
                              ": Weir is in this process too, so a GPU's memory is the budget");
  } else if (names_any(preload, {"jemalloc", "tcmalloc", "mimalloc"})) {
    found.ok("preloaded", "LD_PRELOAD=" + preload + ": an allocator of host memory is no conflict");
  } else if (facts.missing_preloads.empty()) {
    found.ok("preloaded", "LD_PRELOAD=" + preload + "; weir run puts libweir.so first");
  }
}

/// A variable whose being set, or value, changes how CUDA works.
void add_cuda(Findings& found, const Variables& variables) {
  const auto named = [&](const char* name) { return value_of(variables, name); };
  if (hides_all(environment_of(variables)("CUDA_VISIBLE_DEVICES"))) {
    found.warn("visible-devices",
               "CUDA_VISIBLE_DEVICES='" + named("CUDA_VISIBLE_DEVICES") + "' hides every GPU",
               "unset CUDA_VISIBLE_DEVICES, or name a GPU: CUDA_VISIBLE_DEVICES=0");
    found.about("CUDA_VISIBLE_DEVICES");
  } else if (variables.contains("CUDA_VISIBLE_DEVICES")) {
    found.ok("visible-devices", "CUDA_VISIBLE_DEVICES='" + named("CUDA_VISIBLE_DEVICES") +
                                    "': programs see these GPUs, numbered from 0");
    found.about("CUDA_VISIBLE_DEVICES");
  }
  if (const std::string blocking = named("CUDA_LAUNCH_BLOCKING");
      !blocking.empty() && blocking != "0") {
    found.warn("launch-blocking",
               "CUDA_LAUNCH_BLOCKING=" + blocking +
                   ": each launch waits for the device, and nothing runs ahead",
               "unset CUDA_LAUNCH_BLOCKING");
  }
  if (const std::string profiler = named("CUDA_INJECTION64_PATH");
      !profiler.empty() && profiler.find("libweir_timeline.so") == std::string::npos) {
    found.warn("profiler",
               "CUDA_INJECTION64_PATH names a profiler, " + profiler +
                   ", which may be the one that CUPTI admits",
               "unset CUDA_INJECTION64_PATH for timelines of Weir");
  }
  if (named("WEIR_BATCH_RANGE").empty()) return;
  if (const std::string nvtx = named("NVTX_INJECTION64_PATH"); !nvtx.empty() && !is_weir(nvtx)) {
    found.warn(
        "nvtx",
        "NVTX_INJECTION64_PATH names another library, " + nvtx + ": WEIR_BATCH_RANGE sees no range",
        "unset NVTX_INJECTION64_PATH");
  }
}

void add_library_path(Findings& found, const Variables& variables) {
  const std::string folders = value_of(variables, "LD_LIBRARY_PATH");
  if (folders.find("/stubs") == std::string::npos) return;
  found.warn("library-path",
             "LD_LIBRARY_PATH has a folder `stubs`, whose libcuda.so is for linking alone",
             "take it out of LD_LIBRARY_PATH");
}

void add_parts_of_gpus(Findings& found, const EnvironmentFacts& facts) {
  const auto named = [&](const char* name) { return value_of(facts.variables, name); };
  if (named("CUDA_VISIBLE_DEVICES").starts_with("MIG-") ||
      named("NVIDIA_VISIBLE_DEVICES").starts_with("MIG-")) {
    found.ok("mig",
             "the device is a part of a GPU (MIG): its memory, and so a budget in percent, "
             "is the part's");
  }
  if (facts.has_mps_pipe || facts.variables.contains("CUDA_MPS_PIPE_DIRECTORY")) {
    found.ok("mps",
             "CUDA's multi-process service (MPS) may run here: each program has its own "
             "budget, or WEIR_SHARE one for all");
  }
  if (!named("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT").empty()) {
    found.warn("mps",
               "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=" + named("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") +
                   " limits device memory below Weir, which does not know of it",
               "set WEIR_BUDGET to no more than that");
  }
  if (const std::string visible = named("NVIDIA_VISIBLE_DEVICES");
      visible == "void" || visible == "none") {
    found.warn("container",
               "NVIDIA_VISIBLE_DEVICES=" + visible + ": this container was given no GPU",
               "start it with --gpus all, or NVIDIA_VISIBLE_DEVICES=all");
  }
}

}  // namespace

std::vector<Finding> check_environment(const EnvironmentFacts& facts) {
  Findings found(Group::kEnvironment);
  add_allocators(found, facts);
  add_torch(found, facts.variables);
  add_jax_and_tensorflow(found, facts.variables);
  add_preloads(found, facts);
  add_cuda(found, facts.variables);
  add_library_path(found, facts.variables);
  add_parts_of_gpus(found, facts);
  return found.take();
}

}  // namespace weir::cli::doctor
