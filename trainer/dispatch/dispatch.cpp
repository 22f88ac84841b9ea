#include "trainer/dispatch/dispatch.hpp"

#include <algorithm>
#include <memory>

#include "scheduler/device/stream.hpp"

namespace weir {
namespace {

/// Few rounds for the product, which takes long and varies little.
constexpr std::uint64_t kMostProductRounds = 5;

std::string describe_case(const DispatchCase& what) {
  return std::to_string(what.elements) + " elements";
}

}  // namespace

std::string parse_dispatch_device(std::string_view name, std::string_view text) {
  if (text != "cpu") {
    refuse(name, text, "cpu: what is timed here are operations that run on the host");
  }
  return std::string(text);
}

std::vector<SettingLine> DispatchSettings::lines() const {
  std::vector<SettingLine> lines{setting_line("device", device.value, device)};
  const auto add = [&lines](const char* name, const Setting<std::uint64_t>& setting) {
    lines.push_back(setting_line(name, std::to_string(setting.value), setting));
  };
  add("operations", operations);
  add("rounds", rounds);
  add("elements-large", elements_large);
  add("elements-small", elements_small);
  add("frontend", frontend);
  add("matrix", matrix);
  return lines;
}

DispatchFigures measure_dispatch(const DispatchSettings& settings, const DispatchHooks& hooks) {
  DispatchFigures figures;
  Product product(settings.device.value, settings.matrix.value,
                  hooks.stop);  // the BLAS first
  const std::chrono::microseconds slow(settings.frontend.value);
  std::vector<std::unique_ptr<Addition>> additions;
  for (const DispatchCase& what : {DispatchCase{settings.elements_large.value, {}},
                                   DispatchCase{settings.elements_small.value, slow},
                                   DispatchCase{settings.elements_small.value, {}}}) {
    figures.cases.push_back({.what = what});
    additions.push_back(std::make_unique<Addition>(settings.device.value, what, hooks.stop));
  }
  const std::uint64_t rounds = settings.rounds.value;
  for (std::uint64_t r = 0; r < rounds && !hooks.stop.stop_requested(); ++r) {
    for (std::size_t i = 0; i < additions.size(); ++i) {
      if (hooks.on_done) hooks.on_done(describe_case(figures.cases[i].what), r, rounds);
      const auto round = additions[i]->round(settings.operations.value);
      if (round) figures.cases[i].rounds.push_back(*round);
    }
  }
  // Not in the rounds above: a frontend that has just computed without pause is the first that the
  // operating system preempts.
  const std::uint64_t product_rounds = std::min(rounds, kMostProductRounds);
  for (std::uint64_t r = 0; r < product_rounds && !hooks.stop.stop_requested(); ++r) {
    if (hooks.on_done) hooks.on_done("matrix product", r, product_rounds);
    if (const auto round = product.round()) figures.products.push_back(*round);
  }
  figures.interrupted = hooks.stop.stop_requested();
  return figures;
}

}  // namespace weir
