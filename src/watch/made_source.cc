#include "watch/made_source.h"

#include <utility>

#include "watch/stream_clock.h"

namespace weir::watch {
namespace {

constexpr Duration kLead = 100ms;
constexpr int kPhases = 32;  // pictures of the loop

bool Within(const std::optional<MadeSpec::Span>& span, Duration at) {
  return span && at >= span->at && at < span->at + span->length;
}

}  // namespace

MadeSource::MadeSource(const MadeSpec& spec, SourceOptions options, const Clock& clock)
    : spec_(spec),
      options_(std::move(options)),
      clock_(clock),
      random_(Seed(spec.seed).Stream("faults").MakeRandom()) {}

Result<std::unique_ptr<Source>> MadeSource::Create(const MadeSpec& spec, const SourceOptions& options,
                                                   const Clock& clock) {
  std::unique_ptr<MadeSource> source(new MadeSource(spec, options, clock));
  source->video_ = spec.codec == MadeSpec::Codec::kH264 ? TRY(MakeMadeH264(source->spec_, source->options_))
                                                        : MakeMadeJpegs(spec);
  return std::unique_ptr<Source>(std::move(source));
}

// Streams do not begin in phase, or their frames would come in bursts.
Status MadeSource::Connect(Instant) {
  if (begun_) return video_->Reconnect(ready_);
  TRY_STATUS(video_->Resize(spec_.width, spec_.height));
  begun_ = true;
  const double phase = Seed(spec_.seed).Stream("phase").MakeRandom().Uniform();
  start_ = clock_.Now() + kLead + FromSeconds(phase / spec_.fps);
  const ClockReading now = ReadClocks(clock_);
  wall_offset_ = now.wall - now.steady.time_since_epoch();
  return {};
}

Instant MadeSource::PlanOf(int64_t index) const {
  return start_ + FromSeconds(static_cast<double>(index) / spec_.fps);
}

// Captures and encodes picture `index`. Returns the packet that leaves the camera then, if any.
Result<std::optional<MadeSource::Coming>> MadeSource::MakePicture(int64_t index) {
  const Instant plan = PlanOf(index);
  const Duration at = plan - start_;
  if (spec_.resize && at >= spec_.resize->at && !resized_) {
    resized_ = true;
    TRY_STATUS(video_->Resize(spec_.resize->width, spec_.resize->height));
  }
  const bool frozen = Within(spec_.freeze, at) && last_;
  if (!frozen) {
    Duration wall = plan.time_since_epoch() + wall_offset_;
    if (spec_.step && at >= spec_.step->at) wall += spec_.step->length;
    last_ = MadePicture{.phase = static_cast<int>(index % kPhases), .counter = counter_++, .wall = wall};
  }
  ++produced_;
  auto packet = TRY(video_->Encode(*last_));
  if (!packet) return std::optional<Coming>();
  if (!frozen && (Within(spec_.stall, at) || random_.Uniform() < spec_.loss)) return std::optional<Coming>();
  if (!frozen && random_.Uniform() < spec_.damage)
    packet->data = packet->data.Slice(0, packet->data.size() / 2);
  return Coming{.packet = *std::move(packet), .due = plan + spec_.delay};
}

Result<std::optional<MadeSource::Coming>> MadeSource::MakeRest() {
  auto packet = TRY(video_->Rest());
  if (packet) return Coming{.packet = *std::move(packet), .due = PlanOf(next_) + spec_.delay};
  return std::exchange(held_back_, std::nullopt);
}

// Makes the next packet that will be delivered, ahead of its moment. Nothing at the end.
Result<std::optional<MadeSource::Coming>> MadeSource::MakeNext() {
  if (held_back_ && held_back_->due > Instant{}) return std::exchange(held_back_, std::nullopt);
  while (spec_.frames == 0 || next_ < spec_.frames) {
    auto coming = TRY(MakePicture(next_++));
    if (!coming) continue;
    if (!held_back_ && spec_.reorder > 0 && random_.Uniform() < spec_.reorder) {
      held_back_ = std::exchange(coming, std::nullopt);
      held_back_->due = Instant{};  // set by the packet that overtakes it
      continue;
    }
    if (held_back_) held_back_->due = coming->due;
    return coming;
  }
  return MakeRest();
}

Result<std::optional<SourceFrame>> MadeSource::Read(Instant until) {
  if (spec_.cut && !cut_done_ && clock_.Now() - start_ >= *spec_.cut) {
    cut_done_ = true;
    coming_.reset();
    return Fail(ErrorCode::kIo, "the connection was cut");
  }
  while (ready_.empty()) {
    if (!coming_) {
      coming_ = TRY(MakeNext());
      if (!coming_) {
        video_->End(ready_);
        if (ready_.empty()) return std::optional<SourceFrame>();
        break;
      }
    }
    SleepUntil(std::min(until, coming_->due));
    const Instant now = clock_.Now();
    if (now < coming_->due) return Fail(ErrorCode::kDeadline, "no frame is due yet");
    video_->Deliver(coming_->packet, now, ready_);
    coming_.reset();
  }
  SourceFrame frame = std::move(ready_.front());
  ready_.pop_front();
  return std::optional(std::move(frame));
}

std::deque<SourceFrame> MadeSource::Leave() {
  video_->Leave(ready_);
  return std::move(ready_);
}

}  // namespace weir::watch
