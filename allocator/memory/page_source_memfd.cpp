#include "allocator/memory/page_source_memfd.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <string>
#include <system_error>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"

namespace weir {
namespace {

constexpr std::uint64_t kSize = MemfdPages::kPageSize.count;

std::string reason(int code) { return std::generic_category().message(code); }

int open_file() {
  const int file = memfd_create("weir-pages", MFD_CLOEXEC);
  if (file < 0) throw Error("memfd_create failed: " + reason(errno));
  return file;
}

/// Sets the file's size once, to all pages of the capacity: a file in memory takes no page before
/// it is written. Fewer if RLIMIT_FSIZE forbids that length, since trying would end the program.
std::uint64_t size_file(int file, Bytes capacity) {
  constexpr auto kLongest = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  std::uint64_t bytes = std::min(capacity.count, kLongest);
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur);
  }
  const std::uint64_t pages = bytes / kSize;
  if (ftruncate(file, static_cast<off_t>(pages * kSize)) == 0) return pages;
  const int code = errno;
  close(file);
  throw Error("a file in memory of " + format_bytes({pages * kSize}) +
              " cannot be had: " + reason(code));
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

off_t offset_of(Page page) { return static_cast<off_t>((page.id - 1) * kSize); }

/// Returns how many of `items`, from the front, satisfy `next(previous, item)`.
template <typename T, typename Next>
std::size_t run_length(std::span<const T> items, const Next& next) {
  const auto end = std::adjacent_find(items.begin(), items.end(),
                                      [&](const T& a, const T& b) { return !next(a, b); });
  return end == items.end() ? items.size()
                            : static_cast<std::size_t>(end - items.begin()) + std::size_t{1};
}

bool is_next_address(const Mapping& a, const Mapping& b) {
  return number(b.address) == number(a.address) + kSize;
}

/// Leaves the addresses reserved and unmapped. `fixed` says whether to replace what is there or to
/// require free addresses. Never munmap: others could get them.
bool clear(void* address, std::size_t bytes, int fixed) noexcept {
  return mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1,
              0) == address;
}

constexpr std::size_t kSpare = 4096;

/// Returns a mapping that merges with no other and that a child does not inherit, or null.
void* map_spare(int file) noexcept {
  void* const spare = mmap(nullptr, kSpare, PROT_NONE, MAP_SHARED, file, 0);
  if (spare == MAP_FAILED) return nullptr;
  if (madvise(spare, kSpare, MADV_DONTFORK) == 0) return spare;
  munmap(spare, kSpare);
  return nullptr;
}

}  // namespace

MemfdPages::MemfdPages(CapacityGauge& gauge)
    : gauge_(gauge),
      file_(open_file()),
      owner_(getpid()),
      pages_in_file_(size_file(file_, gauge.capacity())),
      spare_(map_spare(file_)) {}

MemfdPages::~MemfdPages() {
  if (spare_ != nullptr && in_owner()) munmap(spare_, kSpare);
  close(file_);
}

bool MemfdPages::in_owner() const noexcept { return getpid() == owner_; }

void* MemfdPages::reserve(Bytes size) {
  const Bytes with_slack = size + kPageSize;
  if (size.count == 0 || with_slack < size || !in_owner()) return nullptr;
  void* const taken = mmap(nullptr, with_slack.count, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (taken == MAP_FAILED) return nullptr;
  const std::uintptr_t aligned = (number(taken) + kSize - 1) / kSize * kSize;
  const std::uintptr_t end = number(taken) + with_slack.count;
  void* const address = reinterpret_cast<void*>(aligned);
  void* const tail = reinterpret_cast<void*>(aligned + size.count);
  // At the limit on mappings this can fail: the rest then stays reserved, at no cost.
  if (aligned != number(taken)) munmap(taken, aligned - number(taken));
  if (end != number(tail)) munmap(tail, end - number(tail));
  return address;
}

void MemfdPages::unreserve(void* address, Bytes size) noexcept {
  if (!in_owner() || munmap(address, size.count) == 0) return;
  log(LogLevel::kError, format_bytes(size) + " of addresses cannot be released: " + reason(errno));
}

std::size_t MemfdPages::create(std::span<Page> pages) {
  if (!in_owner()) return 0;
  const std::size_t taken = gauge_.take_up_to(pages.size(), kPageSize);
  std::size_t made = 0;
  try {
    const Lock lock(mutex_);
    const std::uint64_t fresh = std::min<std::uint64_t>(pages_in_file_ - made_, taken);
    if (free_.capacity() < made_ + fresh) free_.reserve(std::max(2 * made_, made_ + fresh));
    for (; made < taken; ++made) {
      if (!free_.empty()) {
        std::pop_heap(free_.begin(), free_.end(), std::greater<>());
        pages[made] = Page{free_.back()};
        free_.pop_back();
      } else if (made_ < pages_in_file_) {
        pages[made] = Page{++made_};
      } else {
        break;
      }
    }
  } catch (...) {
    gauge_.withdraw(kPageSize * taken);
    throw;
  }
  gauge_.withdraw(kPageSize * (taken - made));
  return made;
}

void MemfdPages::destroy(std::span<const Page> pages) noexcept {
  if (!in_owner()) return;
  while (!pages.empty()) {
    const std::size_t run =
        run_length(pages, [](const Page& a, const Page& b) { return b.id == a.id + 1; });
    release(pages.front(), run);
    pages = pages.subspan(run);
  }
}

/// Memory that cannot be returned stays charged permanently.
void MemfdPages::release(Page first, std::size_t count) noexcept {
  if (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(first),
                static_cast<off_t>(count * kSize)) != 0) {
    log(LogLevel::kError,
        format_bytes(kPageSize * count) + " cannot be released: " + reason(errno));
    return;
  }
  {
    const Lock lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      free_.push_back(first.id + i);
      std::push_heap(free_.begin(), free_.end(), std::greater<>());
    }
  }
  // Only now: whoever takes this room must find a page for it.
  gauge_.withdraw(kPageSize * count);
}

std::size_t MemfdPages::map(std::span<const Mapping> mappings) noexcept {
  if (!in_owner()) return 0;
  std::size_t done = 0;
  while (done < mappings.size()) {
    const auto rest = mappings.subspan(done);
    const std::size_t run = run_length(rest, [](const Mapping& a, const Mapping& b) {
      return is_next_address(a, b) && b.page.id == a.page.id + 1;
    });
    if (!map_run(rest.front(), run)) break;
    done += run;
  }
  return done;
}

bool MemfdPages::map_run(const Mapping& first, std::size_t count) noexcept {
  const std::size_t bytes = count * kSize;
  const void* const memory = mmap(first.address, bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, file_, offset_of(first.page));
  if (memory == MAP_FAILED) {
    // The operating system may have removed the old mapping first, so others could get the
    // addresses.
    (void)clear(first.address, bytes, MAP_FIXED_NOREPLACE);
    return false;
  }
  if (madvise(first.address, bytes, MADV_DONTFORK) == 0) return true;
  (void)clear_mapped(first.address, bytes);
  return false;
}

/// The last mapped page may have brought the process one past the limit, since a hole splits a
/// mapping in three. Then the operating system refuses every call that could make a mapping, even
/// this one, which removes two.
bool MemfdPages::clear_mapped(void* address, std::size_t bytes) noexcept {
  if (clear(address, bytes, MAP_FIXED)) return true;
  const Lock lock(mutex_);
  if (spare_ != nullptr) munmap(spare_, kSpare);
  const bool cleared = clear(address, bytes, MAP_FIXED);
  spare_ = map_spare(file_);
  return cleared;
}

std::size_t MemfdPages::unmap(std::span<const Mapping> mappings) noexcept {
  if (!in_owner()) return mappings.size();  // a child inherits none of them
  std::size_t done = 0;
  while (done < mappings.size()) {
    const auto rest = mappings.subspan(done);
    const std::size_t run = run_length(rest, is_next_address);
    if (!clear_mapped(rest.front().address, run * kSize)) break;
    done += run;
  }
  return done;
}

Bytes MemfdPages::resident() const {
  struct stat status {};
  if (fstat(file_, &status) != 0) throw Error("fstat failed: " + reason(errno));
  constexpr std::uint64_t kBlock = 512;  // the unit of st_blocks on every file system (stat(3))
  return {static_cast<std::uint64_t>(status.st_blocks) * kBlock};
}

}  // namespace weir
