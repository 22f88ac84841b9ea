#include "tools/replay/subject/upstreams.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "scheduler/device/cuda.hpp"

namespace weir::replay {
namespace {

template <typename Kind>
MakeUpstream make_of() {
  return [](Bytes capacity) { return std::make_unique<Kind>(capacity); };
}

/// Half of the machine's memory. Nothing touches it, but a trace that needs more is not a useful
/// test.
Bytes host_capacity() {
  const auto pages = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 2L));
  const auto page = static_cast<std::uint64_t>(std::max(sysconf(_SC_PAGESIZE), 1L));
  return {pages / 2 * page};
}

}  // namespace

MakeUpstream upstreams_of(UpstreamKind kind) {
  switch (kind) {
    case UpstreamKind::kSimulated:
      return make_of<SimulatedUpstream>();
    case UpstreamKind::kHost:
      return make_of<HostUpstream>();
    case UpstreamKind::kCuda:
      if (const CudaAnswer answer = find_cuda(); answer.devices == 0) {
        throw UsageError("GPU memory is not available: " + answer.why);
      }
      return cuda_upstreams();
  }
  return {};
}

Bytes default_capacity(UpstreamKind kind, Bytes peak) {
  switch (kind) {
    case UpstreamKind::kSimulated:
      return std::max(gib(1024), peak * 16);
    case UpstreamKind::kHost:
      return host_capacity();
    case UpstreamKind::kCuda:
      return cuda_capacity();
  }
  return {};
}

}  // namespace weir::replay
