#pragma once

// Streams, each with a thread that runs its operations in order, and the rules of stream capture:
// what it refuses and what breaks it.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

/// Creates a stream with its thread. It ends once it is `closing` and its operations have ended.
std::shared_ptr<Stream> make_stream(Context& context, unsigned flags, int priority);
void close_stream(Stream& stream);

/// The stream of `handle` (0, 1 and 2 are the default streams); null if there is none.
std::shared_ptr<Stream> find_stream(Call& call, CUstream handle);

/// The same, which refuses an unknown one.
std::shared_ptr<Stream> get_stream(Call& call, CUstream handle);
std::shared_ptr<Event> get_event(Driver& driver, CUevent handle);

/// Enqueues `operation`, or adds it to the stream's capture. Only operations without `settle` and
/// `report` can be captured.
void submit(Call& call, const std::shared_ptr<Stream>& stream, Operation operation);
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

// ---- Captures.

/// For calls that are unsafe during a capture: breaks the captures that forbid the call, and then
/// refuses it.
void refuse_unsafe(Driver& driver);
/// Refuses work on the legacy stream while a blocking stream is capturing, and breaks the capture
/// if `breaks`.
void check_implicit(Call& call, const Stream& stream, bool breaks = true);
/// If the stream is capturing, breaks the capture and refuses the call.
void refuse_capturing(const Stream& stream);
/// The same for calls about all streams of the current context.
void refuse_capturing_context(Call& call);

void add_to_capture(Stream& stream, Node node);
/// Makes `stream`, capturing or not, wait for `event`, which was recorded in a capture.
void wait_in_capture(const std::shared_ptr<Stream>& stream, const Event& event);
/// Ends the capture, however it went, and returns its graph. The caller holds the capture: its
/// streams drop it.
Graph end_capture(Driver& driver, const std::shared_ptr<Capture>& capture);
/// The handle of the graph that the capture adds to; null if that was destroyed.
CUgraph graph_of(Driver& driver, Capture& capture);
/// Destroys the graph that was made for a failed capture.
void drop_new_graph(Driver& driver, Capture& capture);
/// `stream` is destroyed: breaks its capture, if there is one, and ends the one that it began.
void leave_capture(Driver& driver, Stream& stream);

}  // namespace weir::standin
