#include "watch/made_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "image/encode.h"
#include "watch/frame_code.h"

namespace weir::watch {
namespace {

constexpr int kBlockRow = 16;  // pixels of a row of blocks at 4:2:0
constexpr Duration kLead = 100ms;

using Colour = std::array<uint8_t, 3>;

void Fill(image::Pixels& pixels, int x0, int y0, int x1, int y1, const Colour& colour) {
  x0 = std::clamp(x0, 0, pixels.width);
  x1 = std::clamp(x1, x0, pixels.width);
  y0 = std::clamp(y0, 0, pixels.height);
  y1 = std::clamp(y1, y0, pixels.height);
  for (int y = y0; y < y1; ++y) {
    uint8_t* at = pixels.data.data() + (static_cast<size_t>(y) * pixels.width + x0) * 3;
    for (int x = x0; x < x1; ++x, at += 3) std::copy(colour.begin(), colour.end(), at);
  }
}

// A background of slow waves and a little noise, so that a picture costs what a photo costs.
image::Pixels DrawBackground(Random& random, int width, int height) {
  image::Pixels pixels{.width = width, .height = height, .channels = 3};
  pixels.data.resize(static_cast<size_t>(width) * height * 3);
  const double fx = random.Uniform(0.01, 0.05), fy = random.Uniform(0.01, 0.05), phase = random.Uniform(0, 6);
  const std::array<double, 3> base{random.Uniform(80, 150), random.Uniform(80, 150), random.Uniform(80, 150)};
  uint8_t* at = pixels.data.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double wave = 35 * std::sin(fx * x + phase) * std::cos(fy * y);
      const double noise = static_cast<double>(random.Next() & 15) - 8;
      for (const double channel : base)
        *at++ = static_cast<uint8_t>(std::clamp(channel + wave + noise, 0.0, 255.0));
    }
  }
  return pixels;
}

struct Person {
  Colour skin, shirt, stripe, trousers;
  double centre, reach, phase, height;  // shares of the picture
};

Person MakePerson(Random& random, int index, int persons) {
  const auto colour = [&] {
    return Colour{static_cast<uint8_t>(random.Integer(0, 255)), static_cast<uint8_t>(random.Integer(0, 255)),
                  static_cast<uint8_t>(random.Integer(0, 255))};
  };
  const auto skin = static_cast<uint8_t>(random.Integer(120, 230));
  const double lane = (index + 0.5) / persons;
  return {.skin = {skin, static_cast<uint8_t>(skin * 3 / 4), static_cast<uint8_t>(skin * 3 / 5)},
          .shirt = colour(),
          .stripe = colour(),
          .trousers = colour(),
          .centre = lane,
          .reach = 0.3 / persons,
          .phase = random.Uniform(0, 2 * std::numbers::pi),
          .height = random.Uniform(0.45, 0.6)};
}

// Draws the person and returns its box.
Box DrawPerson(const Person& person, int phase, int top, image::Pixels& pixels) {
  const double angle = person.phase + 2 * std::numbers::pi * phase / MadeClip::kPhases;
  const int ground = pixels.height - 4, height = static_cast<int>(person.height * (ground - top));
  const int width = std::max(8, height * 2 / 5);
  const int x = static_cast<int>((person.centre + person.reach * std::sin(angle)) * pixels.width) - width / 2;
  const int y = ground - height;
  const int head = height / 5, waist = y + height * 3 / 5;
  Fill(pixels, x + width / 3, y, x + width * 2 / 3, y + head, person.skin);
  for (int line = y + head; line < waist; ++line)
    Fill(pixels, x, line, x + width, line + 1, (line - y) / 6 % 2 == 0 ? person.shirt : person.stripe);
  Fill(pixels, x + width / 8, waist, x + width * 7 / 16, ground, person.trousers);
  Fill(pixels, x + width * 9 / 16, waist, x + width * 7 / 8, ground, person.trousers);
  const auto share = [](int value, int side) {
    return std::clamp(static_cast<float>(value) / static_cast<float>(side), 0.0F, 1.0F);
  };
  return {share(x, pixels.width), share(y, pixels.height), share(x + width, pixels.width),
          share(ground, pixels.height)};
}

int StripHeight(int width) { return (CodeHeight(width) + kBlockRow - 1) / kBlockRow * kBlockRow; }

image::JpegOptions Coding(int quality) {
  return {.quality = quality, .sampling = image::Sampling::k420, .standard_tables = true, .restart_rows = 1};
}

}  // namespace

std::optional<ScanLayout> FindScan(std::string_view jpeg) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(jpeg[at]); };
  if (jpeg.size() < 4 || byte(0) != 0xFF || byte(1) != 0xD8) return std::nullopt;
  size_t at = 2;
  while (true) {
    if (at + 4 > jpeg.size() || byte(at) != 0xFF) return std::nullopt;
    const bool scan = byte(at + 1) == 0xDA;
    at += 2 + (static_cast<size_t>(byte(at + 2)) << 8 | byte(at + 3));
    if (scan) break;
  }
  ScanLayout layout{.scan = at};
  for (; at + 1 < jpeg.size(); ++at) {
    if (byte(at) != 0xFF || byte(at + 1) == 0) continue;
    if (byte(at + 1) == 0xD9) {
      layout.end = at;
      return layout;
    }
    if (byte(at + 1) < 0xD0 || byte(at + 1) > 0xD7) return std::nullopt;
    layout.restarts.push_back(at++);
  }
  return std::nullopt;
}

Result<std::shared_ptr<const MadeClip>> MadeClip::Create(const MadeSpec& spec, int width, int height) {
  auto clip = std::make_shared<MadeClip>();
  clip->width_ = width;
  clip->quality_ = spec.quality;
  Random background = Seed(spec.seed).Stream("background").MakeRandom();
  Random looks = Seed(spec.seed).Stream("persons").MakeRandom();
  const image::Pixels empty = DrawBackground(background, width, height);
  std::vector<Person> persons;
  for (int i = 0; i < spec.persons; ++i) persons.push_back(MakePerson(looks, i, spec.persons));
  const int strip = StripHeight(width);
  const auto strip_rows = static_cast<size_t>(strip / kBlockRow);
  for (int phase = 0; phase < kPhases; ++phase) {
    image::Pixels pixels = empty;
    std::vector<Box>& boxes = clip->persons_.emplace_back();
    for (const Person& person : persons) boxes.push_back(DrawPerson(person, phase, strip, pixels));
    const std::string jpeg = TRY(image::EncodeJpeg(pixels, Coding(spec.quality)));
    const auto layout = FindScan(jpeg);
    if (!layout || layout->restarts.size() < strip_rows)
      return Fail(ErrorCode::kInternal, "the JPEG encoder made no restart markers");
    clip->heads_.push_back(jpeg.substr(0, layout->scan));
    clip->tails_.push_back(jpeg.substr(layout->restarts[strip_rows - 1]));
  }
  return clip;
}

Result<std::string> MadeClip::Encode(int phase, uint16_t stream, uint32_t counter,
                                     Duration captured_wall) const {
  image::Pixels strip{.width = width_, .height = StripHeight(width_), .channels = 3};
  strip.data.assign(static_cast<size_t>(strip.width) * strip.height * 3, 128);
  BurnCode({.stream = stream,
            .counter = counter,
            .captured = std::chrono::floor<std::chrono::microseconds>(captured_wall)},
           strip);
  const std::string jpeg = TRY(image::EncodeJpeg(strip, Coding(quality_)));
  const auto layout = FindScan(jpeg);
  if (!layout) return Fail(ErrorCode::kInternal, "the JPEG encoder made no scan");
  const auto at = static_cast<size_t>(phase);
  return heads_[at] + jpeg.substr(layout->scan, layout->end - layout->scan) + tails_[at];
}

MadeSource::MadeSource(const MadeSpec& spec, const SourceOptions& options, const Clock& clock)
    : spec_(spec), options_(options), clock_(clock), random_(Seed(spec.seed).Stream("faults").MakeRandom()) {}

// Streams do not begin in phase, or their frames would come in bursts.
Status MadeSource::Connect(Instant) {
  if (!clip_) {
    clip_ = TRY(MadeClip::Create(spec_, spec_.width, spec_.height));
    if (spec_.resize) resized_clip_ = TRY(MadeClip::Create(spec_, spec_.resize->width, spec_.resize->height));
    const double phase = Seed(spec_.seed).Stream("phase").MakeRandom().Uniform();
    start_ = clock_.Now() + kLead + FromSeconds(phase / spec_.fps);
    wall_offset_ = WallTime() - clock_.Now().time_since_epoch();
  }
  return {};
}

Instant MadeSource::PlanOf(int64_t index) const {
  return start_ + FromSeconds(static_cast<double>(index) / spec_.fps);
}

// Draws the next frame that will be delivered, ahead of its moment. Nothing at the end.
Result<std::optional<MadeSource::Ready>> MadeSource::MakeNext() {
  const auto within = [](const std::optional<MadeSpec::Span>& span, Duration at) {
    return span && at >= span->at && at < span->at + span->length;
  };
  if (held_back_) return std::exchange(held_back_, std::nullopt);
  while (spec_.frames == 0 || next_ < spec_.frames) {
    const Instant plan = PlanOf(next_);
    const Duration at = plan - start_;
    const int phase = static_cast<int>(next_ % MadeClip::kPhases);
    ++next_;
    if (spec_.resize && at >= spec_.resize->at && !resized_) {
      resized_ = true;
      clip_ = resized_clip_;
    }
    if (within(spec_.freeze, at) && !last_jpeg_.empty()) {
      ++produced_;
      return Ready{.frame = {.jpeg = last_jpeg_}, .due = plan + spec_.delay};
    }
    const uint32_t counter = counter_++;
    ++produced_;
    if (within(spec_.stall, at) || random_.Uniform() < spec_.loss) continue;
    Duration wall = plan.time_since_epoch() + wall_offset_;
    if (spec_.step && at >= spec_.step->at) wall += spec_.step->length;
    std::string jpeg = TRY(clip_->Encode(phase, static_cast<uint16_t>(spec_.seed), counter, wall));
    if (random_.Uniform() < spec_.damage) jpeg.resize(jpeg.size() / 2);
    last_jpeg_ = Bytes::Copy(jpeg);
    Ready ready{.frame = {.jpeg = last_jpeg_}, .due = plan + spec_.delay};
    if (random_.Uniform() < spec_.reorder && !held_back_) {
      held_back_ = std::move(ready);
      continue;
    }
    if (held_back_) held_back_->due = ready.due;
    return ready;
  }
  return std::exchange(held_back_, std::nullopt);
}

Result<std::optional<SourceFrame>> MadeSource::Read(Instant until) {
  if (spec_.cut && !cut_done_ && clock_.Now() - start_ >= *spec_.cut) {
    cut_done_ = true;
    ready_.reset();
    return Fail(ErrorCode::kIo, "the connection was cut");
  }
  if (!ready_) {
    ready_ = TRY(MakeNext());
    if (!ready_) return std::optional<SourceFrame>();
  }
  SleepUntil(std::min(until, ready_->due));
  const Instant now = clock_.Now();
  if (now < ready_->due) return Fail(ErrorCode::kDeadline, "no frame is due yet");
  SourceFrame frame = std::move(ready_->frame);
  ready_.reset();
  frame.arrived = now;
  return frame;
}

}  // namespace weir::watch
