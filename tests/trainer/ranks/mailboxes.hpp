#pragma once

// Messages between threads of a test, in place of MPI.

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "trainer/ranks/transport.hpp"

namespace weir::testing {

/// The messages under way between all ranks, by sender, receiver and tag.
struct Mailboxes {
  std::mutex mutex;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> messages;
};

class MailboxTransport final : public Transport {
 public:
  MailboxTransport(Mailboxes& boxes, int rank, int size)
      : boxes_(boxes), rank_(rank), size_(size) {}

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  void send(std::span<const std::byte> bytes, int to, int tag) override {
    const std::lock_guard lock(boxes_.mutex);
    boxes_.messages[{rank_, to, tag}].emplace_back(bytes.begin(), bytes.end());
  }
  void receive(std::span<std::byte> bytes, int from, int tag) override {
    wanted_.push_back({bytes, from, tag});
  }
  bool progress() override {
    const std::lock_guard lock(boxes_.mutex);
    std::erase_if(wanted_, [this](const Wanted& wanted) {
      auto& box = boxes_.messages[{wanted.from, rank_, wanted.tag}];
      if (box.empty()) return false;
      if (box.front().size() != wanted.bytes.size()) throw std::runtime_error("another size");
      std::ranges::copy(box.front(), wanted.bytes.begin());
      box.pop_front();
      return true;
    });
    return wanted_.empty();
  }
  [[nodiscard]] std::vector<int> waits_for() const override {
    std::vector<int> others;
    for (const Wanted& wanted : wanted_) others.push_back(wanted.from);
    std::ranges::sort(others);
    return others;
  }
  void finish() override {}

 private:
  struct Wanted {
    std::span<std::byte> bytes;
    int from;
    int tag;
  };

  Mailboxes& boxes_;
  const int rank_;
  const int size_;
  std::vector<Wanted> wanted_;
};

}  // namespace weir::testing
