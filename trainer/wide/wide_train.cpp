#include "trainer/wide/wide_train.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "kernels/parts/step_state.hpp"
#include "trainer/checkpoint/checkpoint_reader.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/run/run_resources.hpp"
#include "trainer/wide/pace.hpp"
#include "trainer/wide/placement.hpp"
#include "trainer/wide/wide_agreement.hpp"
#include "trainer/wide/wide_feed.hpp"

namespace weir {
namespace {

WideRanks ranks_of(const WideSettings& settings, Communicator* ranks) {
  if (ranks == nullptr) return {};
  return {
      .ranks = ranks, .parallel = settings.parallel.value.value(), .bucket = settings.bucket.value};
}

WideOptions network_options(const WideSettings& settings, const WideRanks& ranks,
                            const std::stop_token& stop) {
  return {.widths = settings.widths(),
          .seed = settings.train.seed.value,
          .first_deviation = input_deviation(settings.training_source(stop)),
          .loss = settings.loss.value,
          .optimizer = settings.optimizer_options(),
          .rows = settings.lazy_rows ? UpdatedRows::kTouched : UpdatedRows::kAll,
          .precision = settings.precision.value,
          .ranks = ranks,
          .batch_rows = settings.train.batch_size.value};
}

/// Resumes from a checkpoint and writes new ones, where the settings ask for that.
class Checkpoints {
 public:
  /// All must outlive it. Throws UsageError for a file that this run cannot go on from. One of
  /// several ranks `writes`: all have the same state.
  Checkpoints(const WideSettings& settings, Scheduler& scheduler, WideNetwork& network, bool writes)
      : network_(network) {
    const std::string& file = settings.checkpoint.value;
    if (file.empty()) return;
    figures_ = checkpoint_settings(settings);
    std::optional<std::uint64_t> begun;
    if (settings.resume) {
      const CheckpointReader saved(settings.checkpoint.source, file);
      resume(saved, scheduler, state(0));
      network.refresh_copies();
      begun = first_ = saved.number(kBatchPosition);
    }
    if (!writes) return;
    writer_.emplace(scheduler, CheckpointOptions{.option = settings.checkpoint.source,
                                                 .path = file,
                                                 .schedule = settings.every.value,
                                                 .begun = begun});
  }
  /// Returns the batches that are done before this run.
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  void after_batch(std::uint64_t done) {
    if (writer_) writer_->after_batch(done, [&] { return state(done); });
  }
  /// Writes the last one, if there are any.
  void finish(std::uint64_t done, WideResult& result) {
    if (!writer_) return;
    result.saved = writer_->finish(done, [&] { return state(done); });
    result.checkpoints = writer_->statistics();
  }

 private:
  [[nodiscard]] CheckpointState state(std::uint64_t done) const {
    return checkpoint_state(figures_, network_, done);
  }

  const WideNetwork& network_;
  Figures figures_;
  std::uint64_t first_ = 0;
  std::optional<Checkpointer> writer_;
};

/// A run's parts. One thread.
class WideRun {
 public:
  WideRun(const WideSettings& settings, const WideHooks& hooks, WideResult& result)
      : settings_(settings),
        hooks_(hooks),
        result_(result),
        ranks_(ranks_of(settings, hooks.ranks)),
        resources_(settings.train),
        watch_(resources_) {
    if (settings.is_placed()) placement_.emplace(settings, resources_);
  }

  /// Trains and tests. What it throws leaves the figures with what was done.
  void run() {
    require_room();
    WideNetwork network(resources_.operations(), network_options(settings_, ranks_, hooks_.stop),
                        placement_ ? &placement_->layer() : nullptr);
    const bool writes = ranks_.ranks == nullptr || ranks_.ranks->rank() == 0;
    Checkpoints checkpoints(settings_, resources_.scheduler(), network, writes);
    result_.first = checkpoints.first();
    train(network, checkpoints);
    if (result_.run.outcome == Outcome::kFinished) test(network);
  }

  /// Ends what is measured. Call it after `run`, also if that threw.
  void collect() {
    wait_all();
    watch_.stop(result_.run);
    resources_.collect(result_.run);
    if (placement_) result_.run.staging += placement_->resources().staging();
    if (!measured_memory_) note_memory();
  }

 private:
  /// Refuses a batch that can never fit. The reader would fill the machine with it before the
  /// device is asked for memory.
  void require_room() {
    const std::vector<std::size_t> all = settings_.widths();
    const std::size_t a_row = std::accumulate(all.begin() + 1, all.end(), std::size_t{0});
    const Setting<std::uint64_t>& rows = settings_.train.batch_size;
    const std::uint64_t present =
        settings_.data ? std::min<std::uint64_t>(rows.value, settings_.data->train.rows())
                       : rows.value;
    // Ranks share the rows, or at least the last layer.
    const std::uint64_t ranks =
        hooks_.ranks == nullptr ? 1 : static_cast<std::uint64_t>(hooks_.ranks->size());
    const Bytes least{present * a_row * sizeof(float) / ranks};
    const Bytes budget = resources_.budget();
    if (least <= budget) return;
    refuse("--batch-size", std::to_string(rows.value),
           "a batch that fits: what its layers compute is " + format_bytes(least) +
               ", and the budget " + format_bytes(budget));
  }
  /// The one that the batches are copied to.
  [[nodiscard]] RunResources& feed_resources() noexcept {
    return placement_ ? placement_->resources() : resources_;
  }
  void wait_all() {
    if (placement_) placement_->resources().scheduler().wait_all();
    resources_.scheduler().wait_all();
  }
  void note_memory() {
    result_.memory = resources_.scheduler().memory_info();
    if (placement_) result_.placement = placement_->stop();
  }
  [[nodiscard]] PlacedBatch begin_batch(std::string_view kind) {
    return {placement_ ? &*placement_ : nullptr, resources_.scheduler(), kind, hooks_.stop};
  }
  /// Inside the batch.
  [[nodiscard]] PackedTensor copy(WideFeed& feed) {
    PackedTensor batch = feed.copy();
    return placement_ ? placement_->layer().with_labels(std::move(batch)) : batch;
  }
  [[nodiscard]] SparseWidths widths() const {
    const std::vector<std::size_t> all = settings_.widths();
    return {.columns = ranks_.part_of(all.front()).count,
            .classes = ranks_.part_of(all.back()).count};
  }
  /// Returns the ranks if they share the rows of a batch.
  [[nodiscard]] const Communicator* sharing_rows() const noexcept {
    return ranks_.share(Parallel::kData) ? ranks_.ranks : nullptr;
  }
  /// Batches that the readers prepare ahead.
  [[nodiscard]] std::size_t ahead() const { return settings_.readers.value + 1; }
  [[nodiscard]] SparseReader& reader(SparseSource source, SparseReaderOptions options) {
    if (ranks_.share(Parallel::kModel)) {
      const std::vector<std::size_t> all = settings_.widths();
      source = part_of_columns(std::move(source), ranks_.part_of(all.front()),
                               ranks_.part_of(all.back()));
    }
    options.threads = settings_.readers.value;
    options.ahead = ahead();
    return feed_resources().add<SparseReader>(std::move(source), options);
  }

  void train(WideNetwork& network, Checkpoints& checkpoints) {
    const std::uint64_t kept = settings_.kept_batches();
    WideFeed feed(
        feed_resources().scheduler(),
        reader(settings_.training_source(hooks_.stop), {.first = kept != 0 ? 0 : result_.first,
                                                        .least = settings_.read_time.value,
                                                        .stop = hooks_.stop}),
        widths(), sharing_rows());
    if (kept != 0) feed.keep(kept, result_.first);
    Pace pace(resources_.operations(), settings_.pace.value, result_.first,
              [this](const PaceLine& line) {
                result_.pace.push_back(line);
                if (hooks_.on_pace) hooks_.on_pace(line);
              });
    wait_all();
    begin_traffic();
    const Bytes copied = feed.copied();
    const auto copying = feed_resources().busy(StreamRole::kCopyIn);
    const auto reading = resources_.busy(StreamRole::kCopyOut);
    if (placement_) placement_->start();
    pace.start();
    watch_.start();
    train_batches(network, feed, pace, checkpoints);
    pace.finish();
    wait_all();
    watch_.stop(result_.run);
    end_traffic();
    checkpoints.finish(done(), result_);
    const auto seconds_since = [](auto before, auto now) {
      return std::chrono::duration<double>(now - before).count();
    };
    result_.to_device = {feed.copied() - copied,
                         seconds_since(copying, feed_resources().busy(StreamRole::kCopyIn))};
    result_.to_host = {pace.read_back(),
                       seconds_since(reading, resources_.busy(StreamRole::kCopyOut))};
    result_.run.mean_loss = pace.mean_loss();
    result_.hit_share = pace.hit_share();
    note_memory();  // while the network is there
    measured_memory_ = true;
    finish_training(network);
  }

  void begin_traffic() {
    if (ranks_.ranks == nullptr) return;
    result_.ranks = RanksFigures{.ranks = ranks_.ranks->size(),
                                 .engine = ranks_.ranks->engine(),
                                 .step = describe_step(split_of(settings_, *ranks_.ranks)),
                                 .sent = ranks_.ranks->traffic().bytes};
  }
  void end_traffic() {
    if (result_.ranks) result_.ranks->sent = ranks_.ranks->traffic().bytes - result_.ranks->sent;
  }

  /// Batches of the whole training.
  [[nodiscard]] std::uint64_t done() const { return result_.first + result_.run.batches; }

  void train_batches(WideNetwork& network, WideFeed& feed, Pace& pace, Checkpoints& checkpoints) {
    HostTimes times(resources_, result_.run, placement_ ? &placement_->resources() : nullptr);
    const std::uint64_t all = settings_.train.batches.value;
    while (done() < all && !hooks_.stop.stop_requested()) {
      try {
        feed.next();
        times.start();
        train_batch(network, feed, pace);
      } catch (const Cancelled&) {
        break;  // while it was made or held back: nothing of it counts
      }
      times.stop();
      ++result_.run.batches;
      note_host_memory();
      if (result_.ranks) {
        result_.ranks->by_formula += step_bytes(split_of(settings_, *ranks_.ranks), feed.rows());
      }
      result_.run.samples.push_back({resources_.held(), feed_resources().staging()});
      pace.after_batch(feed.rows());
      checkpoints.after_batch(done());
      if (hooks_.on_done) hooks_.on_done(done(), all);
    }
    if (done() < all) result_.run.outcome = Outcome::kInterrupted;
  }

  /// Call after each batch of the training.
  void note_host_memory() {
    HostMemoryFigures& memory = result_.host_memory;
    const Bytes obtained = feed_resources().staging_obtained();
    if (result_.run.batches <= 2 * ahead()) {
      memory.warm_up_batches = result_.run.batches;
      memory.warm_up = obtained;
    }
    memory.later = obtained - memory.warm_up;
  }

  void train_batch(WideNetwork& network, WideFeed& feed, Pace& pace) {
    const PlacedBatch batch = begin_batch("train");
    const PackedTensor packed = copy(feed);
    WideNetwork::Tape tape = network.forward(packed);
    const Tensor hits = network.hits(tape.back().values, packed);
    const Tensor loss = network.step(packed, std::move(tape));
    network.add_up_rows(std::array{loss, hits});
    // Last, where no wait for memory is left that a stop could end: only whole batches count.
    pace.add(loss, hits);
  }

  void finish_training(WideNetwork& network) {
    Scheduler& scheduler = resources_.scheduler();
    const StepState state = load_step_state(scheduler.read(network.step_state()));
    result_.skipped_steps = state.skipped_steps;
    result_.loss_scale = state.loss_scale;
    if (!hooks_.read_weights || result_.run.outcome != Outcome::kFinished) return;
    const std::vector<Parameter>& parameters = network.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Scheduler& there = i < 2 ? feed_resources().scheduler() : scheduler;
      result_.run.weights.push_back(there.read(parameters[i].value));
    }
  }

  /// The batches to test on are dealt out to ranks that have all weights.
  [[nodiscard]] SparseSource test_source() const {
    const Communicator* const ranks = sharing_rows();
    if (ranks == nullptr) return settings_.test_source(hooks_.stop);
    return [source = settings_.test_source(hooks_.stop),
            first = static_cast<std::uint64_t>(ranks->rank()),
            step = static_cast<std::uint64_t>(ranks->size())](
               std::uint64_t index, SparseRows& rows) { source(first + index * step, rows); };
  }

  /// As `evaluate` does: hits stay on the device and are read once, at the end.
  void test(WideNetwork& network) {
    TrainResult& run = result_.run;
    run.testing = true;
    Scheduler& scheduler = resources_.scheduler();
    const Tensor hits = resources_.operations().filled({1}, 0, "hits in all");
    WideFeed feed(feed_resources().scheduler(), reader(test_source(), {}), widths());
    const std::uint64_t batches =
        batches_of(settings_.test_rows(), settings_.train.batch_size.value);
    const Communicator* const ranks = sharing_rows();
    const std::uint64_t step = ranks == nullptr ? 1 : static_cast<std::uint64_t>(ranks->size());
    std::uint64_t index = ranks == nullptr ? 0 : static_cast<std::uint64_t>(ranks->rank());
    for (; index < batches && !hooks_.stop.stop_requested(); index += step) {
      try {
        feed.next();
        const PlacedBatch batch = begin_batch("test");
        const PackedTensor packed = copy(feed);
        resources_.operations().accumulate(hits, network.hits(network.infer(packed), packed));
      } catch (const Cancelled&) {
        break;
      }
      ++run.test_batches;
      run.test_images += feed.rows();
    }
    network.add_up_rows(std::array{hits});
    wait_all();
    if (index < batches) {
      run.outcome = Outcome::kInterrupted;
      return;
    }
    run.test_images = settings_.test_rows();  // of all ranks
    run.test_accuracy =
        static_cast<double>(scheduler.read(hits).front()) / static_cast<double>(run.test_images);
  }

  const WideSettings& settings_;
  const WideHooks& hooks_;
  WideResult& result_;
  const WideRanks ranks_;
  RunResources resources_;
  std::optional<Placement> placement_;  ///< if the first layer is elsewhere
  Watch watch_;
  bool measured_memory_ = false;
};

}  // namespace

float input_deviation(const SparseSource& source) {
  SparseRows rows;
  source(0, rows);
  double squares = 0;
  for (const float value : rows.values) squares += double{value} * double{value};
  const double mean = squares / static_cast<double>(std::max<std::size_t>(rows.rows(), 1));
  return mean > 0 ? static_cast<float>(std::sqrt(2 / mean)) : 1.0F;
}

void compare_with_float32(WideResult& result, WideSettings settings, const WideHooks& hooks) {
  if (result.run.outcome != Outcome::kFinished) return;
  settings.precision.value = Precision::kFloat32;
  settings.checkpoint.value.clear();
  settings.train.pool.log.value.clear();
  const WideResult other = train_wide(settings, {.stop = hooks.stop, .ranks = hooks.ranks});
  result.float32_outcome = other.run.outcome;
  if (other.run.outcome != Outcome::kFinished) {
    result.run.report = other.run.report;
    if (hooks.ranks != nullptr) result.run.outcome = other.run.outcome;  // it ends the others
    return;
  }
  result.float32 = {.mean_loss = other.run.mean_loss,
                    .test_accuracy = other.run.test_accuracy,
                    .seconds = other.run.seconds};
}

WideResult train_wide(const WideSettings& settings, const WideHooks& hooks) {
  if (hooks.ranks != nullptr) require_ranks(settings, hooks.ranks->size());
  WideResult result;
  result.parameters = parameter_count(settings.widths());
  const std::string budgets =
      settings.is_placed() ? "--budget or --first-layer-budget" : "--budget";
  // not even the workspace fits
  until_out_of_memory(
      result.run, settings.train,
      [&] {
        WideRun run(settings, hooks, result);
        until_out_of_memory(
            result.run, settings.train,
            [&] {
              try {
                run.run();
              } catch (const Cancelled&) {  // before the first batch
                result.run.outcome = Outcome::kInterrupted;
              }
            },
            budgets);
        run.collect();
      },
      budgets);
  return result;
}

}  // namespace weir
