#include "tools/preload/process/devices.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/driver/scope.hpp"

namespace weir::preload {

void refuse_to_go_on(const char* why) noexcept {
  const NoCancel no_cancel;
  log(LogLevel::kError, why);
  std::fflush(stdout);  // only stdout: another thread may be blocked reading its input
  _exit(2);  // inside a call of the runtime, so its exit handlers could wait for that call
}

// Attaching to a share may take seconds. Other threads and devices go on meanwhile; only threads
// that need the same device wait for its end.
Device* Devices::get(int number) noexcept {
  try {
    Lock lock(mutex_);
    while (std::ranges::find(becoming_known_, number) != becoming_known_.end()) {
      const NoCancel no_cancel;
      made_.wait(lock);
    }
    for (const auto& known : devices_) {
      if (known->number() == number) return known.get();
    }
    std::size_t total = 0;
    if (driver_.cuDeviceTotalMem_v2(&total, number) != CUDA_SUCCESS) return nullptr;
    becoming_known_.push_back(number);
    lock.unlock();
    const NoCancel no_cancel;
    std::unique_ptr<Device> made = make(number, {total});
    lock.lock();
    std::erase(becoming_known_, number);
    devices_.push_back(std::move(made));
    made_.notify_all();
    return devices_.back().get();
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
}

std::unique_ptr<Device> Devices::make(int number, Bytes total) {
  auto made = std::make_unique<Device>(driver_, settings_, gate_, number, total);
  if (settings_.share.is_on()) made->attach([this] { keep_budgets(); });
  return made;
}

// The CUDA runtime asks for the memory of every device that it sees. Each rank's program would take
// a floor on every device of the machine.
Device* Devices::without_attaching(int number) noexcept {
  if (!settings_.share.is_on()) return get(number);
  const Lock lock(mutex_);
  for (const auto& known : devices_) {
    if (known->number() == number) return known.get();
  }
  return nullptr;
}

Device* Devices::current() noexcept {
  CUdevice number = 0;
  return driver_.cuCtxGetDevice(&number) == CUDA_SUCCESS ? get(number) : nullptr;
}

std::vector<Device*> Devices::all() const {
  std::vector<Device*> all;
  const Lock lock(mutex_);
  for (const auto& device : devices_) all.push_back(device.get());
  return all;
}

std::vector<Device*> Devices::in_use() const {
  std::vector<Device*> used = all();
  std::erase_if(used, [](const Device* device) { return !device->was_used(); });
  return used;
}

Bytes Devices::visible_budget(int number, Bytes total) noexcept {
  if (Device* const known = without_attaching(number)) {
    return std::min(total, known->account().budget());
  }
  if (!settings_.share.is_on()) return total;
  try {
    return std::min(total, settings_.share.floor_in(budget_of(settings_, total)));
  } catch (const std::exception&) {
    return total;  // the settings do not fit this device: attaching says so
  }
}

void Devices::keep_budgets(std::chrono::nanoseconds most) noexcept {
  attempt(LogLevel::kDebug, "nothing was released", [&] {
    for (Device* const device : all()) device->keep_budget(most);
  });
}

}  // namespace weir::preload
