#include "tools/preload/settings/settings.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/time_text.hpp"
#include "allocator/pool_kind.hpp"

namespace weir::preload {
namespace {

bool parse_switch(std::string_view name, std::string_view text) {
  if (text == "0" || text == "1") return text == "1";
  refuse(name, text, "0 or 1");
}

std::string parse_text(std::string_view /*name*/, std::string_view text) {
  return std::string(text);
}

bool is_auto(std::string_view text) {
  return std::ranges::equal(text, std::string_view("auto"), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

class Lines {
 public:
  void add(std::string_view name, std::string value, const std::string& source) {
    lines_.push_back({std::string(name), std::move(value), source});
  }
  template <typename T>
  void add(std::string_view name, std::string value, const Setting<T>& setting) {
    add(name, std::move(value), setting.source);
  }
  void add_pool(const Settings& settings) {
    const PoolOptions& pool = settings.pool;
    const bool both = settings.auto_pools.value;
    add("pool", pool_name(settings), both ? settings.auto_pools.source : pool.kind.source);
    add_own(pool.kind.value, pool);
    if (both) add_own(PoolKind::kBestFit, pool);
    add("budget", exact_budget(pool.budget.value), pool.budget);
    add("alloc-log", pool.log.value, pool.log);
    if (pool.log.value.empty()) return;
    add("alloc-log-limit", exact_bytes(pool.log_limit.value), pool.log_limit);
  }
  void add_policy(const PolicyOptions& policy) {
    add("policy", std::string(to_string(policy.policy.value)), policy.policy);
    // The other policies have no soft limit, so show none.
    if (policy.policy.value == Policy::kThrottled) {
      add("run-ahead", format_run_ahead(policy.run_ahead.value), policy.run_ahead);
    }
  }
  void add_share(const ShareSettings& share) {
    if (!share.is_on()) return;
    add("share", share.name.value, share.name);
    add("share-floor", exact_budget(share.floor.value), share.floor);
    if (!share.group.value.empty()) add("share-group", share.group.value, share.group);
  }
  [[nodiscard]] std::vector<SettingLine> take() { return std::move(lines_); }

 private:
  /// Adds the settings that only this kind has: WEIR_POOL_PAGE_SIZE as `pool-page-size`.
  void add_own(PoolKind kind, const PoolOptions& pool) {
    for (const PoolSetting* own : kind_of_pool(kind).settings) {
      add(flag_of(*own), own->text(pool), own->source(pool));
    }
  }

  std::vector<SettingLine> lines_;
};

}  // namespace

void check_pool(std::string_view name, std::string_view text) {
  if (is_auto(text)) return;
  try {
    (void)parse_pool_kind(name, text);
  } catch (const UsageError&) {
    refuse(name, text, "auto, " + std::string(allowed_kinds_of_pool()));
  }
}

std::string pool_name(const Settings& settings) {
  return settings.auto_pools.value ? "auto" : std::string(to_string(settings.pool.kind.value));
}

std::chrono::nanoseconds parse_max_wait(std::string_view name, std::string_view text) {
  if (const auto time = parse_time(text)) return *time;
  refuse(name, text, "a time above zero and up to 3600s, such as 10s (units s, ms, us)");
}

Settings Settings::from_environment(const Environment& environment) {
  Settings settings;
  const char* const kind = environment("WEIR_POOL");
  const bool by_name = kind != nullptr && is_auto(kind);
  if (kind != nullptr && *kind != '\0') check_pool("WEIR_POOL", kind);
  // `auto` is only ours, and overrides MXNet's names of the same setting.
  const Environment others = [&](const char* name) -> const char* {
    const std::string_view of = name;
    return by_name && (of == "WEIR_POOL" || of.ends_with("_MEM_POOL_TYPE")) ? nullptr
                                                                            : environment(name);
  };
  settings.pool = PoolOptions::from_environment(MxnetContext::kGpu, others);
  settings.auto_pools = {settings.pool.kind.source == "default", by_name ? "WEIR_POOL" : "default"};
  // cuMemAlloc mostly serves the segments of a caching framework, which keeps and splits them
  // itself. If each is a driver allocation of its own, it can be shared with other processes.
  if (settings.auto_pools.value) {
    settings.pool.kind = Setting<PoolKind>::by_default(PoolKind::kNaive);
  }
  settings.policy = PolicyOptions::from_environment(environment);
  settings.share = ShareSettings::from_environment(environment);
  read_setting(settings.sync_free, environment, {"WEIR_SYNC_FREE"}, parse_switch);
  read_setting(settings.max_wait, environment, {"WEIR_MAX_WAIT"}, parse_max_wait);
  read_setting(settings.spill, environment, {"WEIR_SPILL"}, parse_name<SpillTo>);
  read_setting(settings.torch, environment, {"WEIR_TORCH"}, parse_name<TorchWay>);
  read_setting(settings.batch_range, environment, {"WEIR_BATCH_RANGE"}, parse_text);
  read_setting(settings.nvml, environment, {"WEIR_NVML"}, parse_name<NvmlAnswers>);
  read_setting(settings.summary, environment, {"WEIR_SUMMARY"}, parse_log);
  settings.publish = timeline::publish_setting(environment);
  settings.timeline = timeline::TimelineSettings::from_environment(environment);
  read_setting(settings.log, environment, {"WEIR_LOG"}, parse_name<LogLevel>);
  settings.pool.validate();
  return settings;
}

std::vector<SettingLine> describe(const Settings& settings) {
  Lines lines;
  lines.add_pool(settings);
  lines.add_policy(settings.policy);
  lines.add_share(settings.share);
  lines.add("sync-free", settings.sync_free.value ? "1" : "0", settings.sync_free);
  lines.add("max-wait", exact_time(settings.max_wait.value), settings.max_wait);
  lines.add("spill", std::string(to_string(settings.spill.value)), settings.spill);
  lines.add("torch", std::string(to_string(settings.torch.value)), settings.torch);
  lines.add("batch-range", settings.batch_range.value, settings.batch_range);
  lines.add("nvml", std::string(to_string(settings.nvml.value)), settings.nvml);
  lines.add("summary", settings.summary.value, settings.summary);
  lines.add("timeline", settings.timeline.file.value, settings.timeline.file);
  lines.add("log", std::string(to_string(settings.log.value)), settings.log);
  return lines.take();
}

}  // namespace weir::preload
