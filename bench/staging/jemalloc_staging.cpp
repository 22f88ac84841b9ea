#include "bench/staging/jemalloc_staging.hpp"

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::size_t kPage = 4096;

void* aligned(void* pointer, std::size_t alignment) {
  std::size_t room = SIZE_MAX;
  return std::align(alignment, 1, pointer, room);
}

template <typename T>
void set(unsigned arena, const char* what, T value) {
  const std::string name = "arena." + std::to_string(arena) + "." + what;
  if (mallctl(name.c_str(), nullptr, nullptr, &value, sizeof value) != 0) {
    throw std::runtime_error("jemalloc refuses " + name);
  }
}

}  // namespace

/// What jemalloc calls for memory. Nothing may be thrown through it.
struct JemallocStaging::Hooks {
  struct Segment {
    std::byte* pointer;
    Bytes size;
    [[nodiscard]] bool contains(const void* address) const {
      return pointer <= address && address < pointer + size.count;
    }
  };

  explicit Hooks(Upstream& from) : upstream(from) {
    table.alloc = [](extent_hooks_t* hooks, void* address, std::size_t size, std::size_t alignment,
                     bool* zero, bool* commit, unsigned) -> void* {
      if (address != nullptr) return nullptr;  // nobody can promise an address
      Hooks& self = *reinterpret_cast<Hooks*>(hooks);
      *commit = true;
      // Buffers ask for no more than a page: it is for jemalloc's own bookkeeping, which needs
      // zeros.
      void* pointer = alignment > kPage ? self.map_bookkeeping(size, alignment) : self.extend(size);
      if (pointer != nullptr && *zero) std::memset(pointer, 0, size);
      return pointer;
    };
    // True: no. The arena keeps what it has; its destructor gives the segments back whole.
    table.dalloc = [](extent_hooks_t*, void*, std::size_t, bool, unsigned) { return true; };
    table.split = [](extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, bool,
                     unsigned) { return false; };
    // No buffer may lie across two segments: a device knows each by itself.
    table.merge = [](extent_hooks_t* hooks, void* a, std::size_t, void* b, std::size_t, bool,
                     unsigned) { return !reinterpret_cast<Hooks*>(hooks)->same_segment(a, b); };
  }
  ~Hooks() {
    for (const Segment& s : segments) upstream.deallocate(s.pointer, s.size);
    for (const Segment& s : bookkeeping) munmap(s.pointer, s.size.count);
  }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  void* extend(std::size_t size) {
    const Bytes padded{size + kPage - Upstream::kAlignment};
    void* pointer = upstream.allocate(padded);
    const std::lock_guard lock(mutex);
    ++calls;
    if (pointer == nullptr) return nullptr;
    segments.push_back({static_cast<std::byte*>(pointer), padded});
    reserved += padded;
    return aligned(pointer, kPage);
  }

  void* map_bookkeeping(std::size_t size, std::size_t alignment) {
    const Bytes padded{size + alignment};
    void* pointer = mmap(nullptr, padded.count, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pointer == MAP_FAILED) return nullptr;
    const std::lock_guard lock(mutex);
    bookkeeping.push_back({static_cast<std::byte*>(pointer), padded});
    return aligned(pointer, alignment);
  }

  bool same_segment(const void* a, const void* b) {
    const std::lock_guard lock(mutex);
    return std::ranges::any_of(segments,
                               [&](const Segment& s) { return s.contains(a) && s.contains(b); });
  }

  extent_hooks_t table{};  ///< first: jemalloc hands back its address
  Upstream& upstream;
  std::mutex mutex;
  std::vector<Segment> segments;
  std::vector<Segment> bookkeeping;
  Bytes reserved;
  std::uint64_t calls = 0;
};

JemallocStaging::JemallocStaging(Upstream& upstream, Bytes growth)
    : hooks_(std::make_unique<Hooks>(upstream)) {
  extent_hooks_t* table = &hooks_->table;
  std::size_t length = sizeof index_;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): jemalloc takes the pointer
  if (mallctl("arenas.create", &index_, &length, &table, sizeof table) != 0) {
    throw std::runtime_error("jemalloc has no arena left");
  }
  // Otherwise each growth is larger than the last.
  set(index_, "retain_grow_limit", growth.count);
  // Free buffers stay as they are: purging would only have them cleared and touched again.
  set<ssize_t>(index_, "dirty_decay_ms", -1);
  set<ssize_t>(index_, "muzzy_decay_ms", -1);
}

JemallocStaging::~JemallocStaging() {
  const std::string name = "arena." + std::to_string(index_) + ".destroy";
  (void)mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
}

void* JemallocStaging::allocate(Bytes size) {
  return mallocx(size.count, MALLOCX_ARENA(index_) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(kPage));
}

void JemallocStaging::deallocate(void* buffer) noexcept {
  dallocx(buffer, MALLOCX_ARENA(index_) | MALLOCX_TCACHE_NONE);
}

Bytes JemallocStaging::reserved() const {
  const std::lock_guard lock(hooks_->mutex);
  return hooks_->reserved;
}

std::uint64_t JemallocStaging::upstream_calls() const {
  const std::lock_guard lock(hooks_->mutex);
  return hooks_->calls;
}

}  // namespace weir::bench
