#include "watch/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/thread.h"
#include "watch/frame_code.h"
#include "watch/picture_input.h"

namespace weir::watch {
namespace {

constexpr Box kWhole{0, 0, 1, 1};
constexpr Duration kOldest = 1h;    // a burnt-in capture time before that is no time
constexpr Duration kFuture = 10ms;  // or after it, when it is still in the future

// The scores of one picture to its best class and that class's probability or score.
struct BestClass {
  int index = 0;
  double score = 0;
};
Result<BestClass> FindBest(const infer::Tensor& scores, const dataset::Recipe& recipe) {
  const size_t count = scores.data.size() / sizeof(float);
  const auto first = static_cast<size_t>(recipe.first_class);
  if (scores.dtype != infer::DType::kFp32 || count <= first)
    return Fail(ErrorCode::kCorrupt, fmt::format("output {} has no FP32 scores", scores.name));
  const auto* data = reinterpret_cast<const float*>(scores.data.data());
  size_t best = first;
  double most = data[0];
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(data[i])) return Fail(ErrorCode::kCorrupt, "the scores are not finite");
    if (i >= first && data[i] > data[best]) best = i;
    most = std::max<double>(most, data[i]);
  }
  BestClass found{static_cast<int>(best - first), data[best]};
  if (!recipe.softmax) return found;
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(data[i] - most);
  found.score = std::exp(data[best] - most) / sum;
  return found;
}

// An embedding of length 1.
Result<std::vector<float>> ReadEmbedding(const infer::Tensor& tensor) {
  const size_t count = tensor.data.size() / sizeof(float);
  if (tensor.dtype != infer::DType::kFp32 || count == 0)
    return Fail(ErrorCode::kCorrupt, fmt::format("output {} is no FP32 embedding", tensor.name));
  std::vector<float> values(count);
  std::memcpy(values.data(), tensor.data.data(), count * sizeof(float));
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  if (!std::isfinite(squares) || squares <= 0)
    return Fail(ErrorCode::kCorrupt,
                "the embedding is zero or not finite: this engine does not compute the model rightly; "
                "try --engine openvino");
  const auto scale = static_cast<float>(1 / std::sqrt(squares));
  for (float& value : values) value *= scale;
  return values;
}

Result<const infer::Tensor*> OutputOf(const infer::Response& response, const std::string& name) {
  const auto found = std::ranges::find(response.outputs, name, &infer::Tensor::name);
  if (found != response.outputs.end()) return &*found;
  if (name.empty() && !response.outputs.empty()) return &response.outputs.front();
  return Fail(ErrorCode::kCorrupt, fmt::format("the answer has no output {}", name));
}

}  // namespace

struct Pipeline::Frame {
  int64_t id = 0;
  FrameRecord record;
  SourceFrame source;
  FrameResult result;
  std::shared_ptr<const image::Pixels> pixels;  // none where the source gives planes
  Instant deadline{};
  std::vector<std::vector<float>> embeddings;  // of result.objects; empty where there is none
  std::atomic<int> pending = 0;
  std::atomic<bool> over = false;  // it has its fate
};

struct Pipeline::Tools {
  JpegFrames jpegs;
  InputMaker inputs;

  Bytes Input(const Frame& frame, const Box& region, const dataset::Recipe& recipe) {
    return frame.source.planar ? inputs.Make(*frame.source.planar, region, recipe)
                               : inputs.Make(*frame.pixels, region, recipe);
  }
};

struct Pipeline::PerStream {
  int64_t arrived = 0;  // by the thread that offers
  // By the one worker that decodes a frame of it.
  CounterCheck counters;
  int64_t last_decoded = -1;
  bool has_code = false;
  int width = 0, height = 0;

  mutable Mutex mutex;
  Tracker tracker GUARDED_BY(mutex);
  int64_t last_tracked GUARDED_BY(mutex) = -1;
  explicit PerStream(const Tracker::Options& options) : tracker(options) {}
};

Pipeline::Pipeline(Parts parts, Options options, const Clock& clock)
    : parts_(parts),
      options_(options),
      clock_(clock),
      most_in_flight_((parts.detect != nullptr ? parts.detect->capacity() : 0) +
                      (parts.infer != nullptr ? parts.infer->capacity() : 0) + options.workers),
      queue_({.latest_only = options.latest_only}) {
  CHECK(parts.sink != nullptr && (parts.detect != nullptr || parts.infer != nullptr));
  for (int i = 0; i < options.streams; ++i) streams_.push_back(std::make_unique<PerStream>(options.tracking));
  for (int i = 0; i < options.workers; ++i)
    threads_.push_back(
        StartThread(fmt::format("decode-{}", i), [this](const std::stop_token& stop) { Work(stop); }));
}

Pipeline::~Pipeline() {
  Stop();
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  threads_.clear();
}

void Pipeline::Offer(int stream, SourceFrame source) {
  auto frame = std::make_shared<Frame>();
  PerStream& mine = *streams_[static_cast<size_t>(stream)];
  frame->source = std::move(source);
  const SourceFrame& s = frame->source;
  frame->record.stream = stream;
  frame->record.sequence = mine.arrived++;
  frame->record.times.arrived = s.arrived;
  frame->record.times.capture = s.arrived;
  const ClockReading now = ReadClocks(clock_);
  std::optional<DeadlineQueue::Dropped> dropped;
  FramePtr superseded;
  {
    MutexLock lock(mutex_);
    offset_.Note(now.steady, now.wall);
    if (s.captured) frame->record.times.capture = *s.captured;
    if (s.captured_wall) frame->record.times.capture = offset_.ToSteady(*s.captured_wall);
    if (s.captured || s.captured_wall) frame->record.capture_source = s.capture_source;
    frame->deadline = frame->record.times.capture + options_.deadline;
    if (!s.dropped) {
      frame->id = next_id_++;
      waiting_[frame->id] = frame;
      dropped = queue_.Offer({.id = frame->id, .stream = stream, .deadline = frame->deadline});
      if (dropped) {
        superseded = waiting_[dropped->entry.id];
        waiting_.erase(dropped->entry.id);
      }
    }
  }
  if (s.dropped) {
    frame->record.dropped = *s.dropped;
    parts_.sink->Ended(frame->record, frame->result);
    return;
  }
  changed_.NotifyOne();
  if (superseded) {
    superseded->record.dropped = dropped->cause;
    parts_.sink->Ended(superseded->record, superseded->result);
  }
}

void Pipeline::DropWaiting(const std::vector<DeadlineQueue::Dropped>& dropped) {
  for (const DeadlineQueue::Dropped& each : dropped) {
    FramePtr frame;
    {
      MutexLock lock(mutex_);
      frame = waiting_[each.entry.id];
      waiting_.erase(each.entry.id);
      if (each.cause == DropCause::kExpired) estimate_.Relax();
      if (waiting_.empty()) idle_.NotifyAll();
    }
    frame->record.dropped = each.cause;
    parts_.sink->Ended(frame->record, frame->result);
  }
}

void Pipeline::Drain() {
  MutexLock lock(mutex_);
  while (in_flight_ > 0 || unanswered_ > 0 || !waiting_.empty()) idle_.Wait(mutex_);
}

void Pipeline::Stop() {
  std::vector<DeadlineQueue::Dropped> dropped;
  {
    MutexLock lock(mutex_);
    dropped = queue_.Clear();
  }
  DropWaiting(dropped);
  Drain();
}

Pipeline::Busy Pipeline::busy() const {
  Busy busy;
  {
    MutexLock lock(mutex_);
    busy = busy_;
  }
  for (int i = 0; i < options_.streams; ++i) busy.tracks += TracksOf(i);
  return busy;
}

int64_t Pipeline::TracksOf(int stream) const {
  const PerStream& mine = *streams_[static_cast<size_t>(stream)];
  MutexLock lock(mine.mutex);
  return mine.tracker.tracks();
}

ClockOffset::Report Pipeline::clock_report() const {
  MutexLock lock(mutex_);
  return offset_.report();
}

void Pipeline::Work(const std::stop_token&) {
  Tools tools;
  while (true) {
    std::optional<Job> job;
    FramePtr frame;
    std::vector<DeadlineQueue::Dropped> dropped;
    {
      MutexLock lock(mutex_);
      while (true) {
        const Instant now = clock_.Now();
        if (!timed_.empty() && timed_.begin()->first <= now) {
          jobs_.push_back(std::move(timed_.begin()->second));
          timed_.erase(timed_.begin());
        }
        if (!jobs_.empty()) {
          job = std::move(jobs_.front());
          jobs_.pop_front();
          if (job->kind != Job::Kind::kLookedUp) --unanswered_;
          break;
        }
        if (queue_.size() > 0 && in_flight_ < most_in_flight_) {
          const auto entry = queue_.Take(now, estimate_.value(), busy_streams_, dropped);
          if (entry) {
            frame = waiting_[entry->id];
            waiting_.erase(entry->id);
            busy_streams_.insert(entry->stream);
            ++in_flight_;
            frame->record.times.taken = now;
          }
          if (entry || !dropped.empty()) break;
        }
        if (ending_) return;
        if (timed_.empty()) {
          changed_.Wait(mutex_);
        } else {
          changed_.WaitUntil(mutex_, timed_.begin()->first);
        }
      }
    }
    DropWaiting(dropped);
    if (job) Continue(*std::move(job), tools);
    if (frame) Begin(frame, tools);
    MutexLock lock(mutex_);
    if (in_flight_ == 0 && unanswered_ == 0 && waiting_.empty()) idle_.NotifyAll();
  }
}

// Decodes; the stream may then give its next frame to another worker.
void Pipeline::Begin(const FramePtr& frame, Tools& tools) {
  const int stream = frame->record.stream;
  const Duration cpu_before = ThreadCpuTime();
  const bool usable = Decode(*frame, tools) && ReadStamp(*frame);
  frame->record.times.decoded = clock_.Now();
  {
    MutexLock lock(mutex_);
    busy_streams_.erase(stream);
    busy_.decode += ThreadCpuTime() - cpu_before + frame->source.decode_time;
  }
  changed_.NotifyOne();
  if (!usable) return Drop(frame, *frame->record.dropped);
  SubmitFirst(frame, tools);
}

bool Pipeline::Decode(Frame& frame, Tools& tools) {
  if (frame.source.planar || frame.source.pixels) {
    NoteSize(frame, frame.source.width, frame.source.height);
    frame.pixels = frame.source.pixels;
    return true;
  }
  // Detected parts are cut out of the frame, so it is decoded in full then.
  int width = 0, height = 0;
  auto pixels = tools.jpegs.Decode(frame.source.jpeg.span(), options_.max_pixels, [&](int w, int h) {
    width = w;
    height = h;
    return parts_.detect != nullptr ? 1 : ShrinkFor(parts_.infer->recipe(), w, h);
  });
  if (!pixels) {
    const bool large = pixels.error().code == ErrorCode::kUnsupported;
    parts_.sink->Fault(frame.record.stream, large ? "too-large" : "damaged", pixels.error().message);
    frame.record.dropped = DropCause::kUndecodable;
    return false;
  }
  NoteSize(frame, width, height);
  frame.pixels = std::make_shared<const image::Pixels>(*std::move(pixels));
  return true;
}

void Pipeline::NoteSize(const Frame& frame, int width, int height) {
  PerStream& mine = *streams_[static_cast<size_t>(frame.record.stream)];
  if (mine.width != 0 && (mine.width != width || mine.height != height))
    parts_.sink->Fault(frame.record.stream, "size-change",
                       fmt::format("{}x{} to {}x{}", mine.width, mine.height, width, height));
  mine.width = width;
  mine.height = height;
}

// The burnt-in code gives the capture time and the order, where there is one.
bool Pipeline::ReadStamp(Frame& frame) {
  PerStream& mine = *streams_[static_cast<size_t>(frame.record.stream)];
  FrameRecord& record = frame.record;
  const int64_t skipped = record.sequence - mine.last_decoded - 1;
  const auto code = frame.source.planar ? ReadCode(*frame.source.planar) : ReadCode(*frame.pixels);
  if (!code) {
    if (mine.has_code)
      parts_.sink->Fault(record.stream, "code-missing",
                         "a frame without the burnt-in code of those before it");
    if (clock_.Now() > frame.deadline) record.dropped = DropCause::kLate;
    return !record.dropped;
  }
  mine.has_code = true;
  record.counter = code->counter;
  Instant captured;
  {
    MutexLock lock(mutex_);
    captured = offset_.ToSteady(code->captured);
  }
  const CounterCheck::Found found = mine.counters.Note(
      {.counter = code->counter, .captured = code->captured, .arrived = record.times.arrived},
      mine.last_decoded < 0 ? 0 : skipped);
  if (found.order == CounterCheck::Order::kNext) mine.last_decoded = record.sequence;
  if (found.lost != 0) parts_.sink->Lost(record.stream, found.lost);
  if (found.recovered) parts_.sink->Lost(record.stream, -1);
  if (found.restarted)
    parts_.sink->Fault(record.stream, "restarted", "the stream counts from the beginning again");
  if (found.clock_step)
    parts_.sink->Fault(record.stream, "clock-step",
                       fmt::format("its clock jumped by {:.1f} ms", Milliseconds(*found.clock_step)));
  const Duration age = record.times.arrived - captured;
  if (age < -kFuture || age > kOldest) {
    parts_.sink->Fault(
        record.stream, "absurd-time",
        fmt::format("the burnt-in capture time lies {:.3f} s before the arrival", Seconds(age)));
  } else {
    if (record.capture_source != CaptureSource::kArrival)
      parts_.sink->CaptureError(record.stream, std::chrono::abs(captured - record.times.capture));
    record.times.capture = captured;
    record.capture_source = CaptureSource::kBurntIn;
    frame.deadline = captured + options_.deadline;
  }
  if (found.order == CounterCheck::Order::kOutOfOrder) record.dropped = DropCause::kOutOfOrder;
  if (found.order == CounterCheck::Order::kRepeated) record.dropped = DropCause::kRepeated;
  if (!record.dropped && clock_.Now() > frame.deadline) record.dropped = DropCause::kLate;
  return !record.dropped;
}

void Pipeline::SubmitFirst(const FramePtr& frame, Tools& tools) {
  if (parts_.detect == nullptr) {
    frame->result.objects.emplace_back();
    frame->embeddings.resize(1);
    frame->pending = 1;
    SubmitObject(frame, 0, kWhole, tools);
    return;
  }
  Bytes item = tools.Input(*frame, kWhole, parts_.detect->recipe());
  frame->record.times.decoded = clock_.Now();
  CountCall();
  parts_.detect->Submit(
      std::move(item), frame->deadline, [this, frame](Result<infer::Response> response, const infer::Times&) {
        Push({.frame = frame, .kind = Job::Kind::kDetected, .response = std::move(response)});
      });
}

void Pipeline::SubmitObject(const FramePtr& frame, size_t object, const Box& region, Tools& tools) {
  Bytes item = tools.Input(*frame, region, parts_.infer->recipe());
  if (parts_.detect == nullptr) frame->record.times.decoded = clock_.Now();
  CountCall();
  parts_.infer->Submit(std::move(item), frame->deadline,
                       [this, frame, object](Result<infer::Response> response, const infer::Times&) {
                         Push({.frame = frame,
                               .object = object,
                               .kind = Job::Kind::kInferred,
                               .response = std::move(response)});
                       });
}

// Notifies under the lock: once it is released the pipeline may end.
void Pipeline::Push(Job job) {
  MutexLock lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.NotifyOne();
}

void Pipeline::CountCall() {
  MutexLock lock(mutex_);
  ++unanswered_;
}

void Pipeline::Continue(Job job, Tools& tools) {
  const FramePtr& frame = job.frame;
  if (job.kind == Job::Kind::kLookedUp) return Finish(frame);
  if (!job.response) return FailedCall(frame, job.response.error());
  if (frame->over) return;
  if (job.kind == Job::Kind::kDetected) return Detected(frame, *job.response, tools);
  Inferred(frame, job.object, *job.response);
}

void Pipeline::FailedCall(const FramePtr& frame, const Error& error) {
  if (frame->over) return;
  switch (error.code) {
    case ErrorCode::kDeadline:
      return Drop(frame, DropCause::kExpired);
    case ErrorCode::kOverloaded:
      return Drop(frame, DropCause::kRefused);
    case ErrorCode::kCancelled:
      return Drop(frame, DropCause::kStopped);
    default:
      break;
  }
  parts_.sink->Fault(frame->record.stream, "model-failed", error.message);
  Drop(frame, DropCause::kFailed);
}

void Pipeline::Detected(const FramePtr& frame, const infer::Response& response, Tools& tools) {
  const dataset::Size size = *parts_.detect->recipe().geometry.OutputSize();
  auto detections =
      ReadDetections(options_.head, response.outputs, size.width, size.height, options_.detection);
  if (!detections) return FailedCall(frame, detections.error());
  frame->record.times.detected = clock_.Now();
  PerStream& mine = *streams_[static_cast<size_t>(frame->record.stream)];
  std::vector<Tracker::Match> matches(detections->size());
  {
    MutexLock lock(mine.mutex);
    // Frames of a stream may be in flight side by side; tracks follow the newest one alone.
    if (frame->record.sequence > mine.last_tracked) {
      mine.last_tracked = frame->record.sequence;
      matches = mine.tracker.Update(*detections);
    }
  }
  std::vector<size_t> embed;
  for (size_t i = 0; i < detections->size(); ++i) {
    FoundObject object{.detection = (*detections)[i]};
    if (matches[i].track != 0) object.track = matches[i].track;
    if (matches[i].embed && parts_.infer != nullptr) embed.push_back(i);
    frame->result.objects.push_back(std::move(object));
  }
  frame->embeddings.resize(detections->size());
  if (embed.empty()) return Finish(frame);
  frame->pending = static_cast<int>(embed.size());
  for (const size_t i : embed) {
    if (frame->over) return;
    SubmitObject(frame, i, (*detections)[i].box, tools);
  }
}

void Pipeline::Inferred(const FramePtr& frame, size_t at, const infer::Response& response) {
  FoundObject& object = frame->result.objects[at];
  const auto output = OutputOf(response, parts_.infer->output());
  if (!output) return FailedCall(frame, output.error());
  if (options_.task == Task::kClassify) {
    const auto best = FindBest(**output, parts_.infer->recipe());
    if (!best) return FailedCall(frame, best.error());
    object.class_index = best->index;
    object.score = best->score;
  } else {
    auto embedding = ReadEmbedding(**output);
    if (!embedding) return FailedCall(frame, embedding.error());
    frame->embeddings[at] = *std::move(embedding);
    object.embedded = true;
  }
  if (frame->pending.fetch_sub(1) == 1) AllInferred(frame);
}

void Pipeline::AllInferred(const FramePtr& frame) {
  const Instant begin = clock_.Now();
  frame->record.times.inferred = begin;
  if (parts_.lookup == nullptr || options_.task != Task::kEmbed) return Finish(frame);
  std::vector<std::vector<float>> wanted;
  std::vector<size_t> of;
  for (size_t i = 0; i < frame->embeddings.size(); ++i) {
    if (frame->embeddings[i].empty()) continue;
    of.push_back(i);
    wanted.push_back(std::move(frame->embeddings[i]));
  }
  const auto answers = parts_.lookup->Find(wanted);
  const Instant end = clock_.Now();
  {
    MutexLock lock(mutex_);
    busy_.lookup += end - begin;
  }
  if (!answers) return FailedCall(frame, answers.error());
  for (size_t i = 0; i < of.size(); ++i) {
    frame->result.objects[of[i]].name = (*answers)[i].name;
    frame->result.objects[of[i]].similarity = (*answers)[i].similarity;
  }
  if (options_.lookup_delay <= Duration::zero()) return Finish(frame);
  {
    MutexLock lock(mutex_);
    timed_.emplace(end + options_.lookup_delay,
                   Job{.frame = frame, .kind = Job::Kind::kLookedUp, .response = {}});
  }
  changed_.NotifyOne();
}

void Pipeline::Finish(const FramePtr& frame) {
  if (frame->over.exchange(true)) return;
  frame->record.times.done = clock_.Now();
  {
    MutexLock lock(mutex_);
    estimate_.Add(*frame->record.times.done - *frame->record.times.taken);
  }
  frame->result.picture = {frame->source.jpeg, frame->source.planar, frame->pixels};
  parts_.sink->Ended(frame->record, frame->result);
  Release();
}

void Pipeline::Drop(const FramePtr& frame, DropCause cause) {
  if (frame->over.exchange(true)) return;
  frame->record.dropped = cause;
  if (cause == DropCause::kExpired) {
    MutexLock lock(mutex_);
    estimate_.Relax();
  }
  parts_.sink->Ended(frame->record, frame->result);
  Release();
}

void Pipeline::Release() {
  MutexLock lock(mutex_);
  --in_flight_;
  changed_.NotifyOne();
}

}  // namespace weir::watch
