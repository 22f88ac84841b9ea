#include "trainer/data/staging_arena.hpp"

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/mutex.hpp"

namespace weir {
namespace {

constexpr std::size_t kPage = 4096;

std::byte* aligned(void* pointer, std::size_t alignment) {
  std::size_t room = SIZE_MAX;
  return static_cast<std::byte*>(std::align(alignment, 1, pointer, room));
}

std::string name_of(unsigned arena, const char* what) {
  return "arena." + std::to_string(arena) + "." + what;
}

void check(int error, const std::string& call) {
  if (error == 0) return;
  throw Error("jemalloc: " + call + " failed (" + std::generic_category().message(error) + ")");
}

template <typename T>
[[nodiscard]] int set(const std::string& name, T value) {
  return mallctl(name.c_str(), nullptr, nullptr, &value, sizeof value);
}

}  // namespace

/// What jemalloc calls for memory. Nothing may be thrown through it.
struct StagingArena::Hooks {
  explicit Hooks(Upstream& from) : upstream(from) {
    table.alloc = [](extent_hooks_t* hooks, void* address, std::size_t size, std::size_t alignment,
                     bool* zero, bool* commit, unsigned) -> void* {
      if (address != nullptr) return nullptr;  // nobody can promise an address
      Hooks& self = *reinterpret_cast<Hooks*>(hooks);
      *commit = true;
      // Buffers ask for no more than a page: it is for the books, which want zeros.
      void* pointer = alignment > kPage ? self.map_books(size, alignment) : self.extend(size);
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
    for (const Segment& s : book_segments) munmap(s.pointer, s.size.count);
  }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  void* extend(std::size_t size) noexcept {
    // An upstream promises less than a page of alignment.
    const Bytes padded{size + kPage - Upstream::kAlignment};
    void* pointer = nullptr;
    try {
      pointer = upstream.allocate(padded);
      const Lock lock(mutex);
      ++calls;
      if (pointer == nullptr) return nullptr;
      segments.push_back({pointer, padded});
      reserved.add(padded);
      return aligned(pointer, kPage);
    } catch (const std::exception& error) {
      if (pointer != nullptr) upstream.deallocate(pointer, padded);
      log(LogLevel::kWarn, std::string("staging memory: ") + error.what());
      return nullptr;
    }
  }

  void* map_books(std::size_t size, std::size_t alignment) noexcept {
    const Bytes padded{size + alignment};
    void* pointer = mmap(nullptr, padded.count, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pointer == MAP_FAILED) return nullptr;
    try {
      const Lock lock(mutex);
      book_segments.push_back({pointer, padded});
      books.add(padded);
      return aligned(pointer, alignment);
    } catch (...) {
      munmap(pointer, padded.count);
      return nullptr;
    }
  }

  bool same_segment(const void* a, const void* b) noexcept {
    const Lock lock(mutex);
    return std::ranges::any_of(segments,
                               [&](const Segment& s) { return s.contains(a) && s.contains(b); });
  }

  struct Segment {
    void* pointer;
    Bytes size;
    [[nodiscard]] bool contains(const void* address) const {
      const auto* const first = static_cast<const std::byte*>(pointer);
      return std::less_equal<>()(first, address) &&
             std::less<>()(address, static_cast<const void*>(first + size.count));
    }
  };

  extent_hooks_t table{};  ///< first: jemalloc hands back its address
  Upstream& upstream;
  Mutex mutex{LockRank::kLeaf};
  std::vector<Segment> segments WEIR_GUARDED_BY(mutex);
  std::vector<Segment> book_segments WEIR_GUARDED_BY(mutex);
  Gauge reserved WEIR_GUARDED_BY(mutex);
  Gauge books WEIR_GUARDED_BY(mutex);
  std::uint64_t calls WEIR_GUARDED_BY(mutex) = 0;
};

StagingArena::StagingArena(Upstream& upstream, Bytes growth)
    : hooks_(std::make_unique<Hooks>(upstream)) {
  extent_hooks_t* table = &hooks_->table;
  std::size_t length = sizeof index_;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): jemalloc takes the pointer
  check(mallctl("arenas.create", &index_, &length, &table, sizeof table), "arenas.create");
  try {
    // Otherwise each growth is larger than the last: 63 MiB were taken for buffers of 40 MiB. There
    // is no such limit, and no need of one, where the user told jemalloc to retain nothing.
    const std::string limit = name_of(index_, "retain_grow_limit");
    const int error = set(limit, std::max<std::size_t>(growth.count, kPage));
    if (error != ENOENT) check(error, limit);
    // Free buffers stay as they are: purging would only have them cleared and touched again.
    for (const char* what : {"dirty_decay_ms", "muzzy_decay_ms"}) {
      const std::string decay = name_of(index_, what);
      check(set<ssize_t>(decay, -1), decay);
    }
  } catch (...) {
    destroy();
    throw;
  }
}

StagingArena::~StagingArena() { destroy(); }

void StagingArena::destroy() noexcept {
  const int error = mallctl(name_of(index_, "destroy").c_str(), nullptr, nullptr, nullptr, 0);
  if (error == 0) return;
  log(LogLevel::kError, "jemalloc keeps an arena of staging memory: its memory is lost");
  (void)hooks_.release();  // jemalloc may still call it
}

void* StagingArena::allocate(Bytes size) {
  return mallocx(std::max<std::size_t>(size.count, 1),
                 MALLOCX_ARENA(index_) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(kAlignment));
}

void StagingArena::deallocate(void* buffer) noexcept {
  if (buffer != nullptr) dallocx(buffer, MALLOCX_ARENA(index_) | MALLOCX_TCACHE_NONE);
}

Gauge StagingArena::reserved() const {
  const Lock lock(hooks_->mutex);
  return hooks_->reserved;
}

Gauge StagingArena::books() const {
  const Lock lock(hooks_->mutex);
  return hooks_->books;
}

std::uint64_t StagingArena::upstream_calls() const {
  const Lock lock(hooks_->mutex);
  return hooks_->calls;
}

}  // namespace weir
