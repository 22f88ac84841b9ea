#include "tools/preload/context/upstream.hpp"

#include <iterator>
#include <string>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"

namespace weir::preload {

void* DriverUpstream::allocate(Bytes size) {
  if (gone_.load(std::memory_order_relaxed)) return nullptr;
  Account::Claim claim(account_, 1, charged(size));
  if (claim.count() == 0) return nullptr;
  const NoCancel no_cancel;  // the driver may wait
  const Inside inside;
  const ContextScope scope(driver_, context_);
  CUdeviceptr pointer = 0;
  const CUresult code =
      scope.good() ? driver_.cuMemAlloc_v2(&pointer, size.count) : CUDA_ERROR_INVALID_CONTEXT;
  if (code == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  if (code != CUDA_SUCCESS) throw DriverError("cuMemAlloc", code);
  void* const memory = reinterpret_cast<void*>(pointer);
  if (!note(memory, size)) {
    (void)driver_.cuMemFree_v2(pointer);
    return nullptr;
  }
  claim.keep(1);
  return memory;
}

bool DriverUpstream::may_release() noexcept {
  return attempt(LogLevel::kDebug, "nothing is released now", false, [&] {
    if (InCallback::now() || fences_.capturing()) return false;
    // One fence at a time, however often this is asked.
    if (fences_.passed(fences_.everything()) < asked_.load()) return false;
    const Point now = fences_.record(fences_.everything());
    asked_.store(now.sequence);
    return fences_.wait(now, {.until = std::chrono::steady_clock::time_point::min()});
  });
}

bool DriverUpstream::settle(const WaitLimit& limit) noexcept {
  return attempt(LogLevel::kDebug, "nothing is released now", false, [&] {
    return !InCallback::now() && !fences_.capturing() &&
           fences_.wait(fences_.record(fences_.everything()), limit);
  });
}

void DriverUpstream::deallocate(void* pointer, Bytes size) noexcept {
  if (gone_.load(std::memory_order_relaxed)) return;
  if (fences_.capturing()) {
    hold(pointer, size);
    if (!fences_.capturing()) release_held(true);  // the capture ended meanwhile
    return;
  }
  const CUresult code = release(pointer, size);
  if (code == CUDA_SUCCESS) {
    account_.withdraw(charged(size));
    return;
  }
  // Memory that cannot be returned stays charged permanently.
  log(LogLevel::kError, format_bytes(size) + " cannot be released: cuMemFree failed (" +
                            std::to_string(static_cast<int>(code)) + ")");
}

CUresult DriverUpstream::release(void* pointer, Bytes size) noexcept {
  decltype(returning_)::iterator returning;
  {
    // Before the driver can reuse the address. Moves a node, so it cannot fail.
    const Lock lock(mutex_);
    returning = returning_.insert(given_.extract(pointer));
  }
  used_.fetch_sub(charged(size).count, std::memory_order_relaxed);
  CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  {
    const NoCancel no_cancel;
    const Inside inside;
    const ContextScope scope(driver_, context_);
    if (scope.good()) code = driver_.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(pointer));
  }
  if (code != CUDA_SUCCESS) used_.fetch_add(charged(size).count, std::memory_order_relaxed);
  {
    const Lock lock(mutex_);
    auto node = returning_.extract(returning);
    if (code != CUDA_SUCCESS) given_.insert(std::move(node));
  }
  returned_.notify_all();
  return code;
}

void DriverUpstream::hold(void* pointer, Bytes size) noexcept {
  try {
    const Lock lock(mutex_);
    held_.emplace_back(pointer, size);
  } catch (const std::exception&) {
    log(LogLevel::kError, format_bytes(size) + " cannot be released: host memory is full");
  }
}

void DriverUpstream::allow(int device) noexcept {
  ContextPages* const pages = pages_if_any();
  if (pages == nullptr || pages->allow(device)) return;
  log(LogLevel::kWarn, "a GPU gets no access to pages of GPU " + std::to_string(account_.device()));
}

Bytes DriverUpstream::held() const noexcept {
  const ContextPages* const pages = pages_if_any();
  Bytes held = pages != nullptr ? pages->held() : Bytes{};
  const Lock lock(mutex_);
  for (const auto& [pointer, size] : held_) held += size;
  return held;
}

bool DriverUpstream::holds() const noexcept {
  const ContextPages* const pages = pages_if_any();
  if (pages != nullptr && pages->holds()) return true;
  const Lock lock(mutex_);
  return !held_.empty();
}

void DriverUpstream::release_held(bool may_release) noexcept {
  if (ContextPages* const pages = pages_if_any(); pages != nullptr) pages->release_held();
  if (!may_release) return;
  Lock lock(mutex_);
  const auto held = std::exchange(held_, {});
  lock.unlock();
  if (held.empty()) return;
  const Account::Releasing releasing(account_);
  for (const auto& [pointer, size] : held) deallocate(pointer, size);
}

bool DriverUpstream::note(const void* pointer, Bytes size) noexcept {
  try {
    const Lock lock(mutex_);
    given_.insert_or_assign(pointer, size);
  } catch (const std::exception&) {
    return false;  // host memory is full
  }
  used_.fetch_add(charged(size).count, std::memory_order_relaxed);
  return true;
}

std::optional<Bytes> DriverUpstream::given(const void* pointer) const noexcept {
  const Lock lock(mutex_);
  const auto found = given_.find(pointer);
  return found == given_.end() ? std::nullopt : std::optional(found->second);
}

bool DriverUpstream::serves(CUdeviceptr address) const noexcept {
  if (gone_.load(std::memory_order_relaxed)) return false;
  if (is_paged(address)) return true;
  const void* const pointer = reinterpret_cast<void*>(address);
  const auto in = [&](const auto& ranges) {
    const auto after = ranges.upper_bound(pointer);
    if (after == ranges.begin()) return false;
    const auto& [base, size] = *std::prev(after);
    return address - reinterpret_cast<CUdeviceptr>(base) < size.count;
  };
  const NoCancel no_cancel;
  Lock lock(mutex_);
  // Afterwards the driver says whose address it is, since it may have given it to the program.
  // Bounded, because the driver's free may wait for work that waits for this thread.
  returned_.wait_for(lock, kMostOfAReturn, [&]() WEIR_REQUIRES(mutex_) { return !in(returning_); });
  return in(given_);
}

void DriverUpstream::disown(const void* pointer, Bytes size) noexcept {
  {
    const Lock lock(mutex_);
    given_.erase(pointer);
  }
  used_.fetch_sub(charged(size).count, std::memory_order_relaxed);
}

ContextPages* DriverUpstream::pages() noexcept {
  return static_cast<ContextPages*>(
      pages_.get([this] { return ContextPages::open(driver_, context_, account_, fences_); }));
}

void DriverUpstream::forget() noexcept {
  gone_.store(true);
  account_.withdraw({used_.exchange(0)});
  if (ContextPages* const pages = pages_if_any(); pages != nullptr) pages->forget();
}

}  // namespace weir::preload
