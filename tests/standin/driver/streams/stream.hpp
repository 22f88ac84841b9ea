#pragma once

// Streams: a thread each, which takes operations in order.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

/// A stream with its thread. It ends once it is `closing` and has ended its operations.
std::shared_ptr<Stream> make_stream(Context& context, unsigned flags, int priority);
void close_stream(Stream& stream);

/// What a program means by `handle` (0, 1 and 2 are the default streams); null when nothing.
std::shared_ptr<Stream> find_stream(Call& call, CUstream handle);

/// Enqueues `operation`, or adds it to the capture of the stream; `captured` receives which. Only
/// operations without `settle` and `report` can be captured.
CUresult submit(Call& call, const std::shared_ptr<Stream>& stream, Operation operation,
                bool* captured = nullptr);
/// What a kernel's, a graph's, a set's or a copy's launch does at its end: where launches block, it
/// waits until the stream has run all that it has. That ends: what was submitted before ends by
/// itself or waits for what was submitted still earlier. A host function that waits for the thread
/// which launches is the exception, here as on a device.
void end_launch(Call& call, const std::shared_ptr<Stream>& stream);
/// Enqueues at once, without a look at captures.
void enqueue(const std::shared_ptr<Stream>& stream, Operation operation);

/// The end of all that was enqueued on `stream` so far. On the legacy stream that includes what
/// its blocking streams have.
std::vector<Point> points_of(const std::shared_ptr<Stream>& stream);
void wait_for(Call& call, const std::vector<Point>& points);
/// Whether all of `points_of` have passed, without a list of them: programs ask often.
[[nodiscard]] bool is_idle(const Stream& stream);
/// Waits for all that was enqueued on the context's streams so far.
void wait_for_context(Call& call, Context& context);
void wait_for_device(Call& call, Device& device);

}  // namespace weir::standin
