#pragma once

// The streams that are followed, readable by launches without a lock. A forgotten stream is just
// followed again.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir::preload {

/// Handles in sets of one cache line. With 10,000 handles hardly any set is full. Thread-safe.
class KnownStreams {
 public:
  [[nodiscard]] static bool has(CUstream stream) noexcept {
    for (const Place& place : set_of(stream)) {
      if (place.load(std::memory_order_relaxed) == stream) return true;
    }
    return false;
  }
  static void add(CUstream stream) noexcept {
    Set& set = set_of(stream);
    for (Place& place : set) {
      CUstream none = nullptr;
      if (place.load(std::memory_order_relaxed) == stream) return;
      if (place.compare_exchange_strong(none, stream, std::memory_order_relaxed)) return;
    }
    set[number_of(stream) % kPlaces].store(stream, std::memory_order_relaxed);
  }
  /// Call before the driver destroys the stream: a new stream can have its handle.
  static void remove(CUstream stream) noexcept {
    for (Place& place : set_of(stream)) {
      CUstream its = stream;
      place.compare_exchange_strong(its, nullptr, std::memory_order_relaxed);
    }
  }
  /// Call when a context is gone with its streams.
  static void clear() noexcept {
    for (Set& set : sets) {
      for (Place& place : set) place.store(nullptr, std::memory_order_relaxed);
    }
  }

 private:
  using Place = std::atomic<CUstream>;
  static constexpr std::size_t kPlaces = 8;
  static constexpr unsigned kSetBits = 12;
  struct alignas(64) Set : std::array<Place, kPlaces> {};

  /// Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4): handles are
  /// addresses with equal low bits.
  [[nodiscard]] static std::uint64_t number_of(CUstream stream) noexcept {
    return reinterpret_cast<std::uintptr_t>(stream) * 0x9E3779B97F4A7C15U;
  }
  [[nodiscard]] static Set& set_of(CUstream stream) noexcept {
    return sets[number_of(stream) >> (64U - kSetBits)];
  }

  inline static constinit std::array<Set, std::size_t{1} << kSetBits> sets{};
};

}  // namespace weir::preload
