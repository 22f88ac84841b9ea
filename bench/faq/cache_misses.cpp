#include "bench/faq/cache_misses.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace weir::bench {

CacheMisses::CacheMisses() noexcept {
  perf_event_attr what{};
  what.type = PERF_TYPE_HARDWARE;
  what.size = PERF_ATTR_SIZE_VER0;  // every kernel knows it
  what.config = PERF_COUNT_HW_CACHE_MISSES;
  what.exclude_kernel = 1;
  what.exclude_hv = 1;
  // The C library has no function for it. This thread, on any processor, without a group.
  descriptor_ =
      static_cast<int>(syscall(SYS_perf_event_open, &what, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (descriptor_ < 0) error_ = errno;
}

CacheMisses::~CacheMisses() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<std::uint64_t> CacheMisses::read() const noexcept {
  std::uint64_t count = 0;
  if (descriptor_ < 0 || ::read(descriptor_, &count, sizeof(count)) != sizeof(count)) return {};
  return count;
}

std::string CacheMisses::refusal() const {
  return error_ == 0 ? std::string() : std::generic_category().message(error_);
}

}  // namespace weir::bench
