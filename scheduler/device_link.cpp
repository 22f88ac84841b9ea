#include "scheduler/device_link.hpp"

#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "scheduler/device/signal.hpp"
#include "scheduler/tensor_table.hpp"

namespace weir {
namespace {

/// Both halves of every copy run here. See CudaStream::await for why on one stream: a wait then
/// comes after every signal that the other device may need first.
constexpr StreamRole kLinkStream = StreamRole::kCompute2;

/// A GPU copies late only from and to its own host memory.
Upstream& staging_of(DeviceBackend& first, DeviceBackend& second) {
  return first.runs_in_enqueue() ? first.host_upstream() : second.host_upstream();
}

}  // namespace

/// One copy: its staging memory, and how far it is.
struct DeviceLink::Transfer {
  Signal began;              ///< the first half copies
  Signal filled;             ///< the staging memory is written, or there is an error
  Signal emptied;            ///< the second half has copied
  std::exception_ptr error;  ///< why there is nothing to copy; written before `filled` is given
  void* staging = nullptr;
  Bytes room{};  ///< of `staging`
  Bytes bytes{};
  bool to_second = false;
  int users = 0;  ///< halves, and copy_to; the link's lock

  [[nodiscard]] bool failed() const noexcept { return filled.given() && error != nullptr; }
  /// Ends the first half. A GPU may already be told to use the contents: ones in every bit show
  /// where, which are NaN in every floating-point type, unless this half's device still writes
  /// them.
  void fail(std::exception_ptr why, bool is_written = false) noexcept {
    if (filled.given()) return;
    error = std::move(why);
    if (!is_written) std::memset(staging, 0xFF, bytes.count);
    filled.give();
  }
};

class DeviceLink::User {
 public:
  /// Takes over one count of `users`.
  User(DeviceLink& link, Transfer& transfer) noexcept : link_(&link), transfer_(&transfer) {}
  User(User&& other) noexcept
      : link_(other.link_), transfer_(std::exchange(other.transfer_, nullptr)) {}
  User& operator=(User&&) = delete;
  ~User() {
    if (transfer_ != nullptr) link_->drop(*transfer_);
  }
  [[nodiscard]] User another() const noexcept {
    const Lock lock(link_->mutex_);
    ++transfer_->users;
    return {*link_, *transfer_};
  }
  /// Null once moved from.
  [[nodiscard]] Transfer* transfer() const noexcept { return transfer_; }

 private:
  DeviceLink* link_;
  Transfer* transfer_;
};

/// Reads the original. Part of its operation's closure: it ends when that is done, and when that
/// was skipped, refused or lost with its device.
class DeviceLink::Source {
 public:
  Source(User user, TensorState& state) noexcept : user_(std::move(user)), state_(&state) {}
  Source(Source&&) noexcept = default;
  Source& operator=(Source&&) = delete;
  ~Source() {
    Transfer* const transfer = user_.transfer();
    if (transfer == nullptr || transfer->filled.given()) return;
    std::exception_ptr why = state_->table->error(*state_);
    if (why == nullptr) why = std::make_exception_ptr(Error("a copy between devices did not run"));
    transfer->fail(std::move(why));
  }
  void run(Stream& stream, std::span<const std::byte> from) {
    Transfer& transfer = *user_.transfer();
    bool is_written = false;
    try {
      stream.give(transfer.began);
      is_written = true;
      stream.copy(transfer.staging, from.data(), transfer.bytes);
      stream.give(transfer.filled);
    } catch (...) {
      transfer.fail(std::current_exception(), is_written);
      throw;
    }
  }

 private:
  User user_;
  TensorState* state_;
};

/// Writes the copy.
class DeviceLink::Target {
 public:
  Target(User user, TensorState& state) noexcept : user_(std::move(user)), state_(&state) {}
  Target(Target&&) noexcept = default;
  Target& operator=(Target&&) = delete;
  ~Target() {
    const Transfer* const transfer = user_.transfer();
    if (transfer == nullptr || !transfer->failed()) return;
    // Before anybody learns that the operation is done. On a GPU its closure ran long before.
    state_->table->note_first(transfer->error);
    state_->table->set_error(*state_, transfer->error);
  }
  void run(Stream& stream, std::span<std::byte> to) {
    Transfer& transfer = *user_.transfer();
    stream.await(transfer.filled);
    if (transfer.failed()) return;  // the first half may still write
    stream.copy(to.data(), transfer.staging, transfer.bytes);
    stream.give(transfer.emptied);
  }

 private:
  User user_;
  TensorState* state_;
};

DeviceLink::DeviceLink(Scheduler& first, Scheduler& second)
    : first_(first), second_(second), host_(staging_of(first.device_, second.device_)) {
  if (&first == &second) throw UsageError("a link needs two schedulers, of two devices");
}

DeviceLink::~DeviceLink() {
  Lock lock(mutex_);
  for (const auto& transfer : transfers_) {
    while (transfer->users != 0) idle_.wait(lock);
  }
  lock.unlock();
  for (const auto& transfer : transfers_) {
    if (transfer->staging != nullptr) host_.deallocate(transfer->staging, transfer->room);
  }
}

DeviceLink::Transfer* DeviceLink::find_idle(Bytes bytes) {
  Transfer* best = nullptr;
  for (const auto& transfer : transfers_) {
    if (transfer->users != 0 || transfer->room < bytes) continue;
    if (best == nullptr || transfer->room < best->room) best = transfer.get();
  }
  return best;
}

DeviceLink::Transfer& DeviceLink::take(Bytes bytes) {
  Lock lock(mutex_);
  Transfer* transfer = find_idle(bytes);
  if (transfer == nullptr) {
    // A GPU's thread learns late of the end of short operations. Asking tells them.
    lock.unlock();
    for (const Scheduler* end : {&first_, &second_}) {
      (void)end->device_.progress().passed(end->device_.stream(kLinkStream));
    }
    lock.lock();
    transfer = find_idle(bytes);
  }
  if (transfer == nullptr) transfer = transfers_.emplace_back(std::make_unique<Transfer>()).get();
  transfer->users = 1;
  return *transfer;
}

DeviceLink::User DeviceLink::begin(Bytes bytes, bool to_second) {
  Transfer& transfer = take(bytes);
  User user(*this, transfer);
  transfer.error = nullptr;
  for (Signal* signal : {&transfer.began, &transfer.filled, &transfer.emptied}) signal->reset();
  transfer.bytes = bytes;
  transfer.to_second = to_second;
  if (transfer.room >= bytes) return user;
  // A new one. Should the host refuse, it is never found again, for it has no room.
  void* const memory = host_.allocate(bytes);
  if (memory == nullptr) {
    throw OutOfMemory("out of host memory for copies between devices: " + format_bytes(bytes) +
                          " were refused, " + format_bytes(staging()) + " are in use",
                      {.asked = bytes, .block = bytes, .allocated = staging()});
  }
  const Lock lock(mutex_);
  transfer.staging = memory;
  transfer.room = bytes;
  return user;
}

void DeviceLink::drop(Transfer& transfer) noexcept {
  const Lock lock(mutex_);
  if (--transfer.users != 0) return;
  if (!transfer.failed() && transfer.emptied.given()) {
    LinkFigures& figures = transfer.to_second ? to_second_ : to_first_;
    ++figures.copies;
    figures.bytes += transfer.bytes;
    figures.time += transfer.filled.given_at() - transfer.began.given_at();
    figures.time += transfer.emptied.given_at() - transfer.filled.awaited_at();
  }
  idle_.notify_all();
}

Tensor DeviceLink::copy_to(Scheduler& to, const Tensor& tensor, std::string_view label,
                           CallSite where) {
  const bool to_second = &to == &second_;
  if (!to_second && &to != &first_) {
    throw UsageError("copy_to: the link does not reach this scheduler of " + to.place());
  }
  Scheduler& from = to_second ? first_ : second_;
  constexpr std::string_view kName = "copy to device";
  from.require_here(kName, {.reads = {tensor}});
  Tensor copy = to.empty(tensor.shape(), tensor.dtype(), label);
  const User user = begin(tensor.bytes(), to_second);
  from.submit(
      kName, {.reads = {tensor}, .stream = kLinkStream},
      [source = Source(user.another(), *tensor.state_)](
          Stream& stream, Inputs in, Outputs /*out*/) mutable { source.run(stream, in.bytes(0)); },
      where);
  to.submit(
      "copy from device", {.writes = {copy}, .stream = kLinkStream},
      [target = Target(user.another(), *copy.state_)](
          Stream& stream, Inputs /*in*/, Outputs out) mutable { target.run(stream, out.bytes(0)); },
      where);
  return copy;
}

LinkFigures DeviceLink::copied_to(const Scheduler& to) const {
  const Lock lock(mutex_);
  return &to == &second_ ? to_second_ : to_first_;
}

Bytes DeviceLink::staging() const {
  const Lock lock(mutex_);
  Bytes bytes{};
  for (const auto& transfer : transfers_) bytes += transfer->room;
  return bytes;
}

}  // namespace weir
