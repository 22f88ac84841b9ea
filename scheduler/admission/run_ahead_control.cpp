#include "scheduler/admission/run_ahead_control.hpp"

namespace weir {

RunAhead RunAheadControl::target(Duration copy) const noexcept {
  if (!adapts(chosen_)) return chosen_;
  return {.batches = chosen_.batches, .time = lead_ + copy + margin_};
}

RunAheadControl::Duration RunAheadControl::note_held_back(Duration stall, Duration copy) noexcept {
  copy_ = copy;
  note_most();
  return held_back_ += stall;
}

void RunAheadControl::note_lead(Duration lead) noexcept {
  leads_.at(lead_count_++ % kLeads) = lead;
  const std::size_t count = std::min(lead_count_, kLeads);
  std::array<Duration, kLeads> sorted = leads_;
  const std::size_t at = (count * 95 + 99) / 100 - 1;
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.begin() + count);
  lead_ = sorted.at(at);
  window_.has_leads = true;
  note_most();
}

void RunAheadControl::note_most() noexcept {
  most_ = std::max(most_, target(copy_).time.value_or(Duration{}));
}

RunAheadStatistics RunAheadControl::statistics() const noexcept {
  RunAheadStatistics now{.target = target(copy_).time.value_or(Duration{}),
                         .most = most_,
                         .lead = {},
                         .copy = {},
                         .margin = {},
                         .caused_idle = caused_idle_};
  if (adapts(chosen_)) {
    now.lead = lead_;
    now.copy = copy_;
    now.margin = margin_;
  }
  return now;
}

void RunAheadControl::note_unused(Duration queued) noexcept {
  window_.least_unused = std::min(window_.least_unused, queued);
}

void RunAheadControl::note_settled(const RunBatch& batch) noexcept {
  const Duration gap = batch.waited_for_memory ? Duration{} : batch.gap;
  const Duration caused = std::clamp(batch.credit - used_, Duration{}, gap);
  used_ += caused;
  caused_idle_ += caused;
  margin_ += caused - take_allowed(caused);
  note_most();

  average_ += (batch.device_time - average_) / (average_.count() != 0 ? 16 : 1);
  allowed_ = std::min(allowed_ + batch.device_time / kIdlePart, average_ * kMostIdleBatches);
  ++window_.batches;
  window_.device_time += batch.device_time;
  if (window_.batches < kWindowBatches || window_.device_time < falling() * kWindowMargins) return;
  const Duration unused = std::min(falling(), window_.least_unused);
  const Duration of_margin = std::min(margin_, unused);
  margin_ -= of_margin / 2;
  if (!window_.has_leads) {
    lead_ -= (unused - of_margin) / 2;
    lead_count_ = 0;
  }
  window_ = {};
}

RunAheadControl::Duration RunAheadControl::take_allowed(Duration caused) noexcept {
  const Duration taken = std::min(caused, allowed_);
  allowed_ -= taken;
  return taken;
}

RunAheadControl::Duration RunAheadControl::falling() const noexcept {
  return window_.has_leads ? margin_ : margin_ + lead_;
}

}  // namespace weir
