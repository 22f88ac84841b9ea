#pragma once

// Streams: each has a thread that runs its operations in order.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

/// Creates a stream with its thread. It ends once it is `closing` and its operations have ended.
std::shared_ptr<Stream> make_stream(Context& context, unsigned flags, int priority);
void close_stream(Stream& stream);

/// The stream of `handle` (0, 1 and 2 are the default streams); null if there is none.
std::shared_ptr<Stream> find_stream(Call& call, CUstream handle);

/// Enqueues `operation`, or adds it to the stream's capture; `captured` receives which. Only
/// operations without `settle` and `report` can be captured.
CUresult submit(Call& call, const std::shared_ptr<Stream>& stream, Operation operation,
                bool* captured = nullptr);
/// Ends the launch of a kernel, a graph, a set or a copy: if launches block, waits until the stream
/// has run all its operations. They end by themselves or wait for still earlier ones. The
/// exception, as on a device, is a host function that waits for the launching thread.
void end_launch(Call& call, const std::shared_ptr<Stream>& stream);
/// Enqueues at once and ignores captures.
void enqueue(const std::shared_ptr<Stream>& stream, Operation operation);

/// The end of all work enqueued on `stream` so far. On the legacy stream that includes its blocking
/// streams' work.
std::vector<Point> points_of(const std::shared_ptr<Stream>& stream);
void wait_for(Call& call, const std::vector<Point>& points);
/// Whether all of `points_of` have passed. Makes no list, because programs ask often.
[[nodiscard]] bool is_idle(const Stream& stream);
/// Waits for all work enqueued on the context's streams so far.
void wait_for_context(Call& call, Context& context);
void wait_for_device(Call& call, Device& device);

}  // namespace weir::standin
