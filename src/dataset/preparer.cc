#include "dataset/preparer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "image/exif.h"
#include "image/formats.h"
#include "image/resize.h"

namespace weir::dataset {
int64_t CentreOffset(int64_t resized, int64_t shown) {
  const int64_t difference = resized - shown, down = difference >> 1;
  return down + ((difference & 1) & (down & 1));
}

namespace {

// More than any camera or format gives a side (JPEG 65,500); bounds the filter's weights.
constexpr int kMaxSide = 1 << 20;

// A buffer that one huge picture made this large is given back.
constexpr size_t kKeptBytes = 64 << 20;

// The part of one upright axis that the output shows: pixels [first, first + count) of `resized`, `pad` black
// ones before them.
struct Span {
  int64_t source = 0, resized = 0, output = 0;
  int64_t first = 0, count = 0, pad = 0;
};

Span MakeSpan(int64_t source, int64_t resized, int64_t output) {
  const int64_t offset = CentreOffset(resized, output);
  const int64_t first = std::max<int64_t>(offset, 0);
  const int64_t end = std::min(resized, offset + output);
  return {source, resized, output, first, end - first, first - offset};
}

// The steps for every picture of one stored size and orientation.
struct Plan {
  image::Turn turn;
  Span x, y;  // upright
  bool resizes = false;
  image::Axis stored_x, stored_y;  // where it resizes
  int shrink = 1;                  // the decoder gives this fraction of the stored picture
  image::Window window;            // of what the decoder gives
};

// How far a JPEG may be shrunk while it is decoded: as far as it stays twice as large as wanted, else to a
// half where that is enough. A mirrored axis would begin with a part of a pixel where the side is no
// multiple.
int ShrinkFor(const Plan& plan, const image::PictureInfo& info) {
  const Span& across = plan.turn.transposed ? plan.y : plan.x;
  const Span& down = plan.turn.transposed ? plan.x : plan.y;
  const auto fits = [&](int shrink) {
    const int64_t margin = shrink > 2 ? 2 : 1;
    return info.width >= margin * shrink * across.resized && info.height >= margin * shrink * down.resized &&
           (!plan.turn.mirror_x || info.width % shrink == 0) &&
           (!plan.turn.mirror_y || info.height % shrink == 0);
  };
  for (const int shrink : {8, 4, 2}) {
    if (fits(shrink)) return shrink;
  }
  return 1;
}

// Where the window lies in the picture that the decoder gives, and how its axes are resampled.
void PlaceWindow(const image::PictureInfo& info, Plan& plan) {
  const Span& across = plan.turn.transposed ? plan.y : plan.x;
  const Span& down = plan.turn.transposed ? plan.x : plan.y;
  const auto axis = [&](const Span& span, bool mirrored, int side) {
    const int given = image::ShrunkSide(side, plan.shrink);
    image::Axis upright =
        image::MakeAxis(given, static_cast<double>(side) / plan.shrink, span.resized, span.first, span.count);
    return mirrored ? image::Mirror(upright, given) : upright;
  };
  plan.stored_x = axis(across, plan.turn.mirror_x, info.width);
  plan.stored_y = axis(down, plan.turn.mirror_y, info.height);
  plan.window = {static_cast<int>(plan.stored_x.source_begin()),
                 static_cast<int>(plan.stored_y.source_begin()),
                 static_cast<int>(plan.stored_x.source_end() - plan.stored_x.source_begin()),
                 static_cast<int>(plan.stored_y.source_end() - plan.stored_y.source_begin())};
}

image::Accepted<Plan> MakePlan(const Geometry& geometry, const image::PictureInfo& info, int64_t max_pixels) {
  if (std::max(info.width, info.height) > kMaxSide) {
    return std::unexpected(
        image::Reject{image::RejectReason::kUnsupported,
                      fmt::format("{}x{}: a side is over {}", info.width, info.height, kMaxSide)});
  }
  Plan plan;
  if (geometry.orientation == Orientation::kExif) plan.turn = image::TurnOf(info.orientation);
  int64_t width = info.width, height = info.height;
  if (plan.turn.transposed) std::swap(width, height);

  int64_t resized_width = width, resized_height = height;
  if (geometry.resize) {
    resized_width = geometry.resize->width;
    resized_height = geometry.resize->height;
  } else if (geometry.short_side) {
    const int64_t side = *geometry.short_side;
    resized_width = width <= height ? side : width * side / height;
    resized_height = width <= height ? height * side / width : side;
  }
  plan.x = MakeSpan(width, resized_width, geometry.crop ? geometry.crop->width : resized_width);
  plan.y = MakeSpan(height, resized_height, geometry.crop ? geometry.crop->height : resized_height);
  if (plan.x.output * plan.y.output > max_pixels) {
    return std::unexpected(
        image::Reject{image::RejectReason::kTooManyPixels,
                      fmt::format("{}x{} would be resized to {}x{}: more than {} pixels", width, height,
                                  resized_width, resized_height, max_pixels)});
  }

  const Span& across = plan.turn.transposed ? plan.y : plan.x;
  const Span& down = plan.turn.transposed ? plan.x : plan.y;
  plan.resizes = resized_width != width || resized_height != height;
  const auto first_shown = [](const Span& span, bool mirrored) {
    return mirrored ? span.source - span.first - span.count : span.first;
  };
  if (!plan.resizes) {
    plan.window = {static_cast<int>(first_shown(across, plan.turn.mirror_x)),
                   static_cast<int>(first_shown(down, plan.turn.mirror_y)), static_cast<int>(across.count),
                   static_cast<int>(down.count)};
    return plan;
  }
  PlaceWindow(info, plan);
  return plan;
}

// RGB to grey, as Pillow's convert("L"): ITU-R BT.601-2 luma in 16-bit fixed point.
void ToGrey(const image::Pixels& rgb, image::Pixels& grey) {
  grey.width = rgb.width;
  grey.height = rgb.height;
  grey.channels = 1;
  grey.data.resize(rgb.data.size() / 3);
  const uint8_t* from = rgb.data.data();
  for (uint8_t& level : grey.data) {
    level = static_cast<uint8_t>((19595u * from[0] + 38470u * from[1] + 7471u * from[2] + 0x8000u) >> 16);
    from += 3;
  }
}

// A part on its own. REQUIRES: `from` holds `held`, and `window` lies within.
void CutOut(const image::Pixels& from, const image::Window& held, const image::Window& window,
            image::Pixels& out) {
  const size_t step = static_cast<size_t>(from.width) * from.channels;
  const uint8_t* first = from.data.data() + static_cast<size_t>(window.y - held.y) * step +
                         static_cast<size_t>(window.x - held.x) * from.channels;
  out.width = window.width;
  out.height = window.height;
  out.channels = from.channels;
  const size_t row_bytes = static_cast<size_t>(window.width) * from.channels;
  out.data.resize(row_bytes * window.height);
  for (int y = 0; y < window.height; ++y) {
    std::memcpy(out.data.data() + y * row_bytes, first + y * step, row_bytes);
  }
}

// Turns `shown` (as stored) upright, puts it on black where the crop is larger, and gives it the channels
// wanted.
void Place(const image::Pixels& shown, const Plan& plan, Channels channels, image::Pixels& out) {
  out.width = static_cast<int>(plan.x.output);
  out.height = static_cast<int>(plan.y.output);
  out.channels = channels == Channels::kGrey ? 1 : 3;
  out.data.assign(static_cast<size_t>(out.width) * out.height * out.channels, 0);
  const int64_t step_x = (plan.turn.mirror_x ? -1 : 1) * int64_t{shown.channels};
  const int64_t step_y = (plan.turn.mirror_y ? -1 : 1) * int64_t{shown.channels} * shown.width;
  const int64_t across = plan.turn.transposed ? step_y : step_x;
  const int64_t down = plan.turn.transposed ? step_x : step_y;
  const int64_t start = (plan.turn.mirror_x ? (shown.width - 1) * int64_t{shown.channels} : 0) +
                        (plan.turn.mirror_y ? (shown.height - 1) * int64_t{shown.channels} * shown.width : 0);
  // Which channel of `shown` gives each of `out`.
  int from[3] = {0, 0, 0};
  if (shown.channels == 3) {
    from[0] = channels == Channels::kBgr ? 2 : 0;
    from[1] = 1;
    from[2] = 2 - from[0];
  }
  for (int64_t y = 0; y < plan.y.count; ++y) {
    const uint8_t* source = shown.data.data() + start + y * down;
    uint8_t* target = out.data.data() + ((plan.y.pad + y) * out.width + plan.x.pad) * out.channels;
    for (int64_t x = 0; x < plan.x.count; ++x, source += across, target += out.channels) {
      for (int c = 0; c < out.channels; ++c) target[c] = source[from[c]];
    }
  }
}

// True where Place would only copy.
bool IsInPlace(const image::Pixels& shown, const Plan& plan, Channels channels) {
  return !plan.turn.transposed && !plan.turn.mirror_x && !plan.turn.mirror_y &&
         plan.x.count == plan.x.output && plan.y.count == plan.y.output && channels != Channels::kBgr &&
         shown.channels == (channels == Channels::kGrey ? 1 : 3);
}

}  // namespace

// One geometry, and what is kept for it.
struct Way {
  Geometry geometry;
  image::Accepted<Plan> plan{};  // for pictures of the size in hand
  image::Resizer resizer;
  image::Pixels grey, resized, placed;

  bool Resizes() const { return plan && plan->resizes; }
  const image::Pixels& InItsChannels(const image::Pixels& pixels);
  void Resample(const image::Pixels& rows, const image::Window& where);
  const image::Pixels* Finish(const image::Pixels& decoded, const image::Window& held);
};

struct Preparer::State {
  std::vector<Way> ways;
  PreparerOptions options;
  image::Decoder decoder;
  image::PictureInfo info;  // the plans are for pictures like it; no width: for none
  int shrink = 1;
  image::Window window;  // all that any way needs
  image::JpegScratch scratch;
  image::Pixels decoded;  // the window, or some of its rows
  std::vector<image::Accepted<const image::Pixels*>> results;
  PrepareTimes times;

  Instant Now() const { return options.clock != nullptr ? options.clock->Now() : Instant(); }
  void MakePlans(const image::PictureInfo& picture);
  bool AllResize() const;
  void Resample(const image::Pixels& rows, const image::Window& where);
  image::Accepted<void> Decode(std::span<const std::byte> encoded);
};

Preparer::Preparer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Preparer::Preparer(const Geometry& geometry, const image::DecodeOptions& options)
    : Preparer(OfAll({geometry}, {.decode = options})) {}

Preparer Preparer::OfAll(std::vector<Geometry> geometries, const PreparerOptions& options) {
  CHECK(!geometries.empty());
  auto state = std::make_unique<State>();
  for (Geometry& geometry : geometries) state->ways.push_back({.geometry = geometry});
  state->options = options;
  return Preparer(std::move(state));
}
Preparer::~Preparer() = default;
Preparer::Preparer(Preparer&&) noexcept = default;

// The plans of all ways for pictures like this one, at a size that is large enough for each.
void Preparer::State::MakePlans(const image::PictureInfo& picture) {
  info = picture;
  shrink = options.shrink && picture.format == image::PictureFormat::kJpeg ? 8 : 1;
  for (Way& way : ways) {
    way.plan = MakePlan(way.geometry, picture, options.decode.max_pixels);
    if (way.plan) shrink = std::min(shrink, way.plan->resizes ? ShrinkFor(*way.plan, picture) : 1);
  }
  std::optional<image::Window> all;
  for (Way& way : ways) {
    if (!way.plan) continue;
    if (shrink > 1) {
      way.plan->shrink = shrink;
      PlaceWindow(picture, *way.plan);
    }
    const image::Window& one = way.plan->window;
    if (!all) all = one;
    const int right = std::max(all->x + all->width, one.x + one.width);
    const int bottom = std::max(all->y + all->height, one.y + one.height);
    all->x = std::min(all->x, one.x);
    all->y = std::min(all->y, one.y);
    all->width = right - all->x;
    all->height = bottom - all->y;
  }
  // Where no way has a plan the picture is decoded all the same: damage is told before anything else.
  window = all.value_or(image::Window{0, 0, 1, 1});
}

image::Accepted<void> Preparer::State::Decode(std::span<const std::byte> encoded) {
  if (decoded.data.capacity() > kKeptBytes) decoded = {};
  const image::PictureInfo picture = TRY(image::ReadPictureInfo(encoded, options.decode));
  if (picture.width != info.width || picture.height != info.height ||
      picture.orientation != info.orientation || picture.format != info.format) {
    MakePlans(picture);
  }
  if (picture.format == image::PictureFormat::kJpeg && AllResize()) {
    const image::DecodeJob job{
        encoded, picture, window, options.decode.tolerate_damage, options.decode.max_pixels, shrink};
    return image::DecodeJpegRows(
        job, scratch, decoded,
        [this](const image::Pixels& rows, const image::Window& where) { Resample(rows, where); });
  }
  TRY_STATUS(decoder.Decode(encoded, picture, window, options.decode, decoded));
  Resample(decoded, window);
  return {};
}

// Nobody needs the window whole then, which is more than a processor's cache holds of a large picture.
bool Preparer::State::AllResize() const {
  return std::ranges::all_of(ways, [](const Way& way) { return way.Resizes() || !way.plan; });
}

void Preparer::State::Resample(const image::Pixels& rows, const image::Window& where) {
  const Instant begin = Now();
  for (Way& way : ways) {
    if (way.Resizes()) way.Resample(rows, where);
  }
  times.resize += Now() - begin;
}

const image::Pixels& Way::InItsChannels(const image::Pixels& pixels) {
  if (geometry.channels != Channels::kGrey || pixels.channels == 1) return pixels;
  ToGrey(pixels, grey);
  return grey;
}

// `rows` begin with those of `where`, which come one after the other, and at first those that other ways
// want.
void Way::Resample(const image::Pixels& rows, const image::Window& where) {
  if (where.y + where.height <= plan->window.y) return;
  const image::Pixels& from = InItsChannels(rows);
  if (where.y <= plan->window.y) resizer.Begin(plan->stored_x, plan->stored_y, from.channels, resized);
  const uint8_t* data = from.data.data();
  const size_t columns = static_cast<size_t>(plan->window.x - where.x) * from.channels;
  resizer.Add({data + columns, static_cast<size_t>(from.width) * from.channels, data + from.data.size(),
               from.channels},
              where.y, where.height);
}

// `decoded` holds `held` of the picture, where the way does not resize.
const image::Pixels* Way::Finish(const image::Pixels& decoded, const image::Window& held) {
  const image::Pixels* shown = &resized;
  if (!plan->resizes) {
    shown = &InItsChannels(decoded);
    if (plan->window != held) {
      CutOut(*shown, held, plan->window, resized);
      shown = &resized;
    }
  }
  if (IsInPlace(*shown, *plan, geometry.channels)) return shown;
  Place(*shown, *plan, geometry.channels, placed);
  return &placed;
}

std::span<const image::Accepted<const image::Pixels*>> Preparer::PrepareAll(
    std::span<const std::byte> encoded) {
  State& s = *state_;
  s.results.clear();
  const Instant begin = s.Now();
  const Duration resized = s.times.resize;
  const image::Accepted<void> decoded = s.Decode(encoded);
  const Instant end = s.Now();
  s.times.decode += end - begin - (s.times.resize - resized);
  for (Way& way : s.ways) {
    if (!decoded) {
      s.results.push_back(std::unexpected(decoded.error()));
    } else if (!way.plan) {
      s.results.push_back(std::unexpected(way.plan.error()));
    } else {
      s.results.push_back(way.Finish(s.decoded, s.window));
    }
  }
  s.times.resize += s.Now() - end;
  return s.results;
}

image::Accepted<const image::Pixels*> Preparer::Prepare(std::span<const std::byte> encoded) {
  return PrepareAll(encoded).front();
}

PrepareTimes Preparer::TakeTimes() { return std::exchange(state_->times, {}); }

size_t InputBytes(const Recipe& recipe, const Size& size) {
  const size_t values = static_cast<size_t>(size.width) * size.height * recipe.geometry.channel_count();
  return values * (recipe.datatype == ElementType::kFp32 ? sizeof(float) : 1);
}

}  // namespace weir::dataset
