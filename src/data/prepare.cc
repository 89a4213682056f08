#include "data/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/resize.h"

namespace weir::data {
namespace {

// More than any camera or format gives a side (JPEG 65,500); bounds the filter's weights.
constexpr int kMaxSide = 1 << 20;

// A buffer that one huge picture made this large is given back.
constexpr size_t kKeptBytes = 64 << 20;

// How a stored picture lies: upright pixel (x, y) is the stored (x, y), or (y, x) where transposed, counted
// from the other end where mirrored. By EXIF orientation 1 to 8 (CIPA DC-008, tag 0x0112).
struct Turn {
  bool transposed, mirror_x, mirror_y;  // mirror_x: along stored rows
};
constexpr Turn kTurns[9] = {{false, false, false}, {false, false, false}, {false, true, false},
                            {false, true, true},   {false, false, true},  {true, false, false},
                            {true, false, true},   {true, true, true},    {true, true, false}};

// The part of one upright axis that the output shows: pixels [first, first + count) of `resized`, `pad` black
// ones before them.
struct Span {
  int64_t source = 0, resized = 0, output = 0;
  int64_t first = 0, count = 0, pad = 0;
};

// x / 2, halves to the even neighbour, as Python's round() has it.
int64_t HalfToEven(int64_t x) {
  const int64_t down = x >> 1;
  return down + ((x & 1) & (down & 1));
}

Span MakeSpan(int64_t source, int64_t resized, int64_t output) {
  const int64_t offset = HalfToEven(resized - output);
  const int64_t first = std::max<int64_t>(offset, 0);
  const int64_t end = std::min(resized, offset + output);
  return {source, resized, output, first, end - first, first - offset};
}

// What is done to every picture of one stored size and orientation.
struct Plan {
  int width = 0, height = 0, orientation = 0;  // of the stored pictures it is for
  Turn turn{};
  Span x, y;  // upright
  bool resizes = false;
  Axis stored_x, stored_y;  // where it resizes
  Window window;            // of the stored picture
};

Accepted<Plan> MakePlan(const Geometry& geometry, const PictureInfo& info, int64_t max_pixels) {
  if (std::max(info.width, info.height) > kMaxSide) {
    return std::unexpected(
        Reject{RejectReason::kUnsupported,
               fmt::format("{}x{}: a side is over {}", info.width, info.height, kMaxSide)});
  }
  Plan plan;
  plan.width = info.width;
  plan.height = info.height;
  plan.orientation = info.orientation;
  if (geometry.orientation == Orientation::kExif) plan.turn = kTurns[info.orientation];
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
    return std::unexpected(Reject{RejectReason::kTooManyPixels,
                                  fmt::format("{}x{} would be resized to {}x{}: more than {} pixels", width,
                                              height, resized_width, resized_height, max_pixels)});
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
  const auto axis = [](const Span& span, bool mirrored) {
    Axis upright = MakeAxis(span.source, span.resized, span.first, span.count);
    return mirrored ? Mirror(upright, span.source) : upright;
  };
  plan.stored_x = axis(across, plan.turn.mirror_x);
  plan.stored_y = axis(down, plan.turn.mirror_y);
  plan.window = {static_cast<int>(plan.stored_x.source_begin()),
                 static_cast<int>(plan.stored_y.source_begin()),
                 static_cast<int>(plan.stored_x.source_end() - plan.stored_x.source_begin()),
                 static_cast<int>(plan.stored_y.source_end() - plan.stored_y.source_begin())};
  return plan;
}

// RGB to grey in place, as Pillow's convert("L"): ITU-R BT.601-2 luma in 16-bit fixed point.
void MakeGrey(Pixels& pixels) {
  if (pixels.channels == 1) return;
  const size_t count = pixels.data.size() / 3;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* rgb = &pixels.data[3 * i];
    pixels.data[i] =
        static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
  }
  pixels.data.resize(count);
  pixels.channels = 1;
}

// Turns `shown` (as stored) upright, puts it on black where the crop is larger, and gives it the channels
// wanted.
void Place(const Pixels& shown, const Plan& plan, Channels channels, Pixels& out) {
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
bool IsInPlace(const Pixels& shown, const Plan& plan, Channels channels) {
  return !plan.turn.transposed && !plan.turn.mirror_x && !plan.turn.mirror_y &&
         plan.x.count == plan.x.output && plan.y.count == plan.y.output && channels != Channels::kBgr &&
         shown.channels == (channels == Channels::kGrey ? 1 : 3);
}

}  // namespace

struct Preparer::State {
  Geometry geometry;
  DecodeOptions options;
  Decoder decoder;
  Resizer resizer;
  Plan plan;  // of the last picture
  Pixels decoded, resized, placed;
};

Preparer::Preparer(const Geometry& geometry, const DecodeOptions& options)
    : state_(std::make_unique<State>(State{geometry, options, {}, {}, {}, {}, {}, {}})) {}
Preparer::~Preparer() = default;
Preparer::Preparer(Preparer&&) noexcept = default;

Accepted<const Pixels*> Preparer::Prepare(std::span<const std::byte> encoded) {
  State& s = *state_;
  if (s.decoded.data.capacity() > kKeptBytes) s.decoded = {};
  const Accepted<PictureInfo> info = ReadPictureInfo(encoded, s.options);
  if (!info) return std::unexpected(info.error());
  if (info->width != s.plan.width || info->height != s.plan.height ||
      info->orientation != s.plan.orientation) {
    Accepted<Plan> plan = MakePlan(s.geometry, *info, s.options.max_pixels);
    if (!plan) return std::unexpected(std::move(plan).error());
    s.plan = *std::move(plan);
  }
  const Accepted<void> decoded = s.decoder.Decode(encoded, *info, s.plan.window, s.options, s.decoded);
  if (!decoded) return std::unexpected(decoded.error());

  const Channels channels = s.geometry.channels;
  if (channels == Channels::kGrey) MakeGrey(s.decoded);
  const Pixels* shown = &s.decoded;
  if (s.plan.resizes) {
    s.resizer.Resize(s.decoded, s.plan.stored_x, s.plan.stored_y, s.resized);
    shown = &s.resized;
  }
  if (IsInPlace(*shown, s.plan, channels)) return shown;
  Place(*shown, s.plan, channels, s.placed);
  return &s.placed;
}

size_t InputBytes(const Recipe& recipe, const Size& size) {
  const size_t values = static_cast<size_t>(size.width) * size.height * recipe.geometry.channel_count();
  return values * (recipe.datatype == ElementType::kFp32 ? sizeof(float) : 1);
}

}  // namespace weir::data
