#include "trainer/checkpoint/checkpointer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/output_place.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/base/time_after.hpp"
#include "trainer/data/input_file.hpp"

namespace weir {
namespace {

/// The file has the words as this machine has them.
static_assert(std::endian::native == std::endian::little);

/// Appends contents, and the checksum of all contents so far.
class CheckedOutput {
 public:
  explicit CheckedOutput(OutputFile& file) : file_(file) {}

  void append(std::span<const std::byte> bytes) {
    checksum_.add(bytes);
    file_.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void append_checksum() {
    const auto bytes = std::bit_cast<std::array<char, kChecksumBytes>>(checksum_.value());
    file_.append({bytes.data(), bytes.size()});
  }

 private:
  OutputFile& file_;
  Checksum checksum_;
};

void write_contents(OutputFile& file, const CheckpointHeader& header, const ReadPiece& read) {
  const std::string begin = encode_header(header);
  std::vector<float> chunk(kChunkElements);
  CheckedOutput output(file);
  output.append(std::as_bytes(std::span(begin)));
  output.append_checksum();
  for (std::size_t i = 0; i < header.sections.size(); ++i) {
    const std::size_t elements = elements_of(header.sections[i]);
    for (std::size_t first = 0; first < elements; first += kChunkElements) {
      const auto piece = std::span(chunk).first(std::min(kChunkElements, elements - first));
      read(i, first, piece);
      output.append(std::as_bytes(piece));
      output.append_checksum();
    }
  }
}

/// Copies one tensor after another while there is room.
class Copies {
 public:
  /// `kept` stays free of copies.
  Copies(Scheduler& scheduler, Bytes kept) : scheduler_(scheduler), kept_(kept) {}

  /// Whether so many bytes fit, as far as is known before they are rounded to blocks.
  [[nodiscard]] bool fits(Bytes bytes) const {
    const MemoryInfo memory = scheduler_.memory_info();
    return memory.allocated + bytes + kept_ <= memory.total;
  }

  /// Returns a copy, or nothing.
  [[nodiscard]] std::optional<Tensor> copy(const Tensor& tensor) const {
    Tensor copy = scheduler_.empty(tensor.shape(), "checkpoint");
    try {
      // On the second stream it overlaps the next batch's work up to the first write of the tensor,
      // which waits for it.
      scheduler_.submit("checkpoint",
                        {.reads = {tensor}, .writes = {copy}, .stream = StreamRole::kCompute2},
                        [](Stream& stream, Inputs in, Outputs out) {
                          stream.copy(out[0].data(), in[0].data(), {in[0].size_bytes()});
                        });
    } catch (const OutOfMemory&) {
      return std::nullopt;  // no block is that large
    }
    if (!fits({})) return std::nullopt;  // its block was larger than it
    return copy;
  }

 private:
  Scheduler& scheduler_;
  const Bytes kept_;
};

CheckpointHeader header_of(const CheckpointState& state) {
  CheckpointHeader header{.settings = state.settings,
                          .position = state.position,
                          .sections = sections_of(state.tensors)};
  (void)encode_header(header);  // refuses it here, and not on the thread
  return header;
}

/// Returns `process 1234 on node7`. A file may be shared by machines.
std::string this_run() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  std::string text = "process " + std::to_string(getpid());
  if (gethostname(host.data(), host.size() - 1) == 0) text += " on " + std::string(host.data());
  return text;
}

/// Writes it for those who find the file locked. Without it, on a full disk, they are refused, too.
void write_owner(int descriptor) {
  const std::string text = this_run() + "\n";
  if (ftruncate(descriptor, 0) == 0) (void)!pwrite(descriptor, text.data(), text.size(), 0);
}

/// Returns the first line of the file, or nothing if it cannot be read.
std::string read_owner(const std::string& name) {
  const int descriptor = open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::array<char, 128> bytes{};
  const ssize_t count = read(descriptor, bytes.data(), bytes.size());
  close(descriptor);
  const std::string text(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return text.substr(0, text.find('\n'));
}

/// Returns whether a run wrote this line, and no other program.
bool is_owner(std::string_view line) {
  constexpr std::string_view kKnown =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. ";
  return line.starts_with("process ") && line.find_first_not_of(kKnown) == std::string_view::npos;
}

}  // namespace

void write_checkpoint(OutputFile& file, const CheckpointHeader& header, const ReadPiece& read) {
  file.begin();
  try {
    write_contents(file, header, read);
  } catch (...) {
    file.discard();
    throw;
  }
  file.commit();
}

std::vector<Section> sections_of(const std::vector<NamedTensor>& tensors) {
  std::vector<Section> sections;
  for (const auto& [name, tensor] : tensors) {
    Section& section = sections.emplace_back(Section{name, {}});
    const Shape& shape = tensor.shape();
    for (std::size_t i = 0; i < shape.dimensions(); ++i) section.extents.push_back(shape[i]);
  }
  return sections;
}

Snapshot take_snapshot(Scheduler& scheduler, const std::vector<NamedTensor>& tensors,
                       std::string_view beside) {
  Snapshot snapshot{.tensors = {}, .held = tensors.size()};
  for (const NamedTensor& named : tensors) snapshot.tensors.push_back(named.tensor);
  const std::optional<Bytes> footprint = scheduler.expected_footprint(beside);
  if (!footprint) return snapshot;
  const Copies copies(scheduler, *footprint * 2);
  Bytes all;
  std::size_t first = tensors.size();
  while (first > 0 && copies.fits(all + tensors[first - 1].tensor.shape().bytes())) {
    all += tensors[--first].tensor.shape().bytes();
  }
  if (first == tensors.size()) return snapshot;
  const Batch batch = scheduler.begin_batch("checkpoint", {.hint = all});
  while (snapshot.held > first) {
    std::optional<Tensor> copy = copies.copy(snapshot.tensors[snapshot.held - 1]);
    if (!copy) break;
    snapshot.tensors[--snapshot.held] = *std::move(copy);
  }
  return snapshot;
}

Checkpointer::Checkpointer(Scheduler& scheduler, CheckpointOptions options)
    : scheduler_(scheduler),
      options_(std::move(options)),
      last_due_(options_.begun.value_or(0)),
      last_time_(options_.now()),
      file_(options_.option, options_.path, OutputFile::Beside::kOneName),
      in_file_(options_.begun),
      thread_([this] { serve(); }) {}

Checkpointer::~Checkpointer() {
  {
    const Lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Checkpointer::after_batch(std::uint64_t done, const State& state) {
  const Time now = options_.now();
  if (!due(options_.schedule, done - last_due_, now - last_time_)) return;
  last_due_ = done;
  last_time_ = now;
  {
    const Lock lock(mutex_);
    if (busy_) {
      ++statistics_.skipped;
      return;
    }
  }
  const CheckpointState taken = state();
  Job job{.done = done, .header = header_of(taken), .snapshot = {}};
  job.snapshot = take_snapshot(scheduler_, taken.tensors, options_.beside);
  const std::size_t held = job.snapshot.held;
  hand_over(std::move(job));
  Lock lock(mutex_);
  while (busy_ && reading_ < held) changed_.wait(lock);
  const std::chrono::nanoseconds delay = options_.now() - now;
  if (held != 0) ++statistics_.held;
  statistics_.delay += delay;
  statistics_.most_delay = std::max(statistics_.most_delay, delay);
}

bool Checkpointer::finish(std::uint64_t done, const State& state) {
  {
    Lock lock(mutex_);
    give_up_ = time_after(options_.now(), options_.most_at_end);
    while (busy_) changed_.wait(lock);
    if (in_file_ == done) return true;
  }
  // No batch comes any more: the tensors need no copies.
  const CheckpointState taken = state();
  Job job{.done = done, .header = header_of(taken), .snapshot = {}};
  for (const NamedTensor& named : taken.tensors) job.snapshot.tensors.push_back(named.tensor);
  hand_over(std::move(job));
  Lock lock(mutex_);
  while (busy_) changed_.wait(lock);
  return in_file_ == done;
}

CheckpointStatistics Checkpointer::statistics() const {
  const Lock lock(mutex_);
  return statistics_;
}

void Checkpointer::hand_over(Job job) {
  {
    const Lock lock(mutex_);
    job_ = std::move(job);
    busy_ = true;
    reading_ = 0;
  }
  changed_.notify_all();
}

void Checkpointer::serve() {
  for (;;) {
    Job job;
    {
      Lock lock(mutex_);
      while (!ends_ && !job_) changed_.wait(lock);
      if (!job_) return;
      job = *std::exchange(job_, std::nullopt);
    }
    write(job);
  }
}

void Checkpointer::write(Job& job) {
  std::string failure;
  try {
    write_checkpoint(file_, job.header,
                     [&](std::size_t section, std::size_t first, std::span<float> out) {
                       begin_chunk(job, section);
                       scheduler_.read(job.snapshot.tensors[section], first, out);
                     });
  } catch (const std::exception& error) {
    failure = error.what();
  }
  job.snapshot.tensors.clear();  // their memory is free before the next may come
  if (!failure.empty()) warn(job, failure);
  {
    const Lock lock(mutex_);
    busy_ = false;
    if (failure.empty()) {
      ++statistics_.written;
      statistics_.last = in_file_ = job.done;
    } else {
      ++statistics_.failed;
    }
  }
  changed_.notify_all();
}

void Checkpointer::begin_chunk(Job& job, std::size_t section) {
  if (section != 0) job.snapshot.tensors[section - 1] = {};  // is read
  {
    const Lock lock(mutex_);
    if (ends_) throw Error("the run ends");
    if (give_up_ && options_.now() >= *give_up_) {
      throw Error("it took longer than a run may take at its end");
    }
    if (reading_ == section) return;
    reading_ = section;
  }
  changed_.notify_all();
}

void Checkpointer::warn(const Job& job, const std::string& failure) const {
  std::string text = "no checkpoint of batch " + std::to_string(job.done) + ": " +
                     failure.substr(0, failure.find('\n'));
  std::optional<std::uint64_t> in_file;
  {
    const Lock lock(mutex_);
    in_file = in_file_;
  }
  if (in_file) text += "; the file keeps that of batch " + std::to_string(*in_file);
  log(LogLevel::kWarn, text);
}

void resume(const CheckpointReader& file, Scheduler& scheduler, const CheckpointState& run) {
  file.require(run.settings, sections_of(run.tensors));
  file.read([&](std::size_t section, std::size_t first, std::span<const float> elements) {
    const Tensor& tensor = run.tensors[section].tensor;
    scheduler.write(tensor, first, borrowed(elements));
    scheduler.wait(tensor);  // the next chunk is read to the same memory
  });
}

CheckpointLock::CheckpointLock(const std::string& option, const std::string& path, LockCall lock) {
  if (path.empty() || path == "-") return;
  const OutputPlace place = find_output(path);
  if (place.special || place.error != 0) return;
  const std::string name = place.path + ".lock";
  const LockedFile file = open_locked(name, lock);
  const std::string owner = read_owner(name);
  if (file.error == EWOULDBLOCK) {
    refuse(option, path,
           "a file that no other run uses: " + (is_owner(owner) ? owner : "another run") + " does");
  }
  if (file.error != 0) {
    refuse(option, path,
           "a file beside which " + name + " can be locked, so that no other run uses it (" +
               std::generic_category().message(file.error) + ")");
  }
  if (!owner.empty() && !is_owner(owner)) {
    close(file.descriptor);
    refuse(option, path, "a file without " + name + " beside it: no run wrote that one");
  }
  name_ = name;
  descriptor_ = file.descriptor;
  write_owner(descriptor_);
}

// The file goes before its lock: who gets the lock then finds that the name is gone.
CheckpointLock::~CheckpointLock() {
  if (descriptor_ < 0) return;
  unlink(name_.c_str());
  close(descriptor_);
}

}  // namespace weir
