#include "watch/stream_spec.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <map>
#include <utility>

#include "base/duration.h"
#include "base/secrets.h"
#include "base/text.h"
#include "watch/frame_code.h"
#include "watch/stream_url.h"

namespace weir::watch {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

template <typename Number>
Result<Number> ParseNumber(std::string_view text, Number low, Number high) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high))
    return Invalid(fmt::format("{} is not a number from {} to {}", Quoted(text), low, high));
  return value;
}

Result<std::pair<int, int>> ParseSize(std::string_view text) {
  const size_t by = text.find('x');
  if (by == std::string_view::npos)
    return Invalid(fmt::format("{} is not a size such as 640x480", Quoted(text)));
  const int width = TRY(ParseNumber(text.substr(0, by), kLeastCodeWidth, 4096));
  const int height = TRY(ParseNumber(text.substr(by + 1), 1, 4096));
  if (width % 16 != 0 || height % 16 != 0 || height < CodeHeight(width) + 48)
    return Invalid(fmt::format("{}: sides are multiples of 16, and the height at least {}", text,
                               CodeHeight(width) + 48));
  return std::pair(width, height);
}

// "2s+500ms" or "2s+-500ms".
Result<MadeSpec::Span> ParseSpan(std::string_view text) {
  const size_t plus = text.find('+');
  if (plus == std::string_view::npos)
    return Invalid(fmt::format("{} is not a moment and a length such as 2s+500ms", Quoted(text)));
  std::string_view length = text.substr(plus + 1);
  const bool negative = length.starts_with('-');
  if (negative) length.remove_prefix(1);
  const Duration value = TRY(ParseDuration(length));
  return MadeSpec::Span{TRY(ParseDuration(text.substr(0, plus))), negative ? -value : value};
}

Status SetMade(MadeSpec& made, std::string_view key, std::string_view value) {
  const auto probability = [&](double& target) -> Status {
    target = TRY(ParseNumber(value, 0.0, 1.0));
    return {};
  };
  const auto span = [&](std::optional<MadeSpec::Span>& target, bool signed_length) -> Status {
    target = TRY(ParseSpan(value));
    if (!signed_length && target->length < Duration::zero()) return Invalid("a length is not negative");
    return {};
  };
  if (key == "size") {
    std::tie(made.width, made.height) = TRY(ParseSize(value));
  } else if (key == "fps") {
    made.fps = TRY(ParseNumber(value, 0.1, 1000.0));
  } else if (key == "persons") {
    made.persons = TRY(ParseNumber(value, 0, 32));
  } else if (key == "seed") {
    made.seed = TRY(ParseNumber<uint64_t>(value, 0, UINT64_MAX));
  } else if (key == "frames") {
    made.frames = TRY(ParseNumber<int64_t>(value, 1, int64_t{1} << 32));
  } else if (key == "quality") {
    made.quality = TRY(ParseNumber(value, 20, 100));
  } else if (key == "codec") {
    if (value != "mjpeg" && value != "h264")
      return Invalid(fmt::format("{} is neither mjpeg nor h264", Quoted(value)));
    made.codec = value == "h264" ? MadeSpec::Codec::kH264 : MadeSpec::Codec::kMjpeg;
  } else if (key == "gop") {
    made.gop = TRY(ParseNumber(value, 1, 10'000));
  } else if (key == "bframes") {
    made.bframes = TRY(ParseNumber(value, 0, 8));
  } else if (key == "delay") {
    made.delay = TRY(ParseDuration(value));
  } else if (key == "loss") {
    return probability(made.loss);
  } else if (key == "reorder") {
    return probability(made.reorder);
  } else if (key == "damage") {
    return probability(made.damage);
  } else if (key == "freeze") {
    return span(made.freeze, false);
  } else if (key == "stall") {
    return span(made.stall, false);
  } else if (key == "step") {
    return span(made.step, true);
  } else if (key == "cut") {
    made.cut = TRY(ParseDuration(value));
  } else if (key == "resize") {
    const size_t plus = value.find('+');
    if (plus == std::string_view::npos)
      return Invalid(fmt::format("{} is not a moment and a size such as 2s+320x240", Quoted(value)));
    const auto size = TRY(ParseSize(value.substr(plus + 1)));
    made.resize = MadeSpec::Resize{TRY(ParseDuration(value.substr(0, plus))), size.first, size.second};
  } else {
    return Invalid(
        fmt::format("there is no {}; the keys are codec, gop, bframes, size, fps, persons, seed, frames, "
                    "quality, delay, loss, reorder, "
                    "damage, freeze, stall, step, cut and resize",
                    Quoted(key)));
  }
  return {};
}

Result<MadeSpec> ParseMade(std::string_view text) {
  MadeSpec made;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return Invalid(fmt::format("{} is not KEY=VALUE", Quoted(part)));
    if (const Status set = SetMade(made, part.substr(0, equals), part.substr(equals + 1)); !set)
      return Context(part.substr(0, equals), set.error());
  }
  if (made.codec == MadeSpec::Codec::kMjpeg && (made.gop > 0 || made.bframes > 0))
    return Invalid("gop and bframes go with codec=h264");
  return made;
}

// "PATH,size=1280x720,fps=15".
Status ParseCamera(std::string_view text, StreamSpec& spec) {
  size_t comma = std::min(text.find(','), text.size());
  spec.kind = StreamKind::kCamera;
  spec.path = text.substr(0, comma);
  if (spec.path.empty()) return Invalid("give v4l2:/dev/videoN");
  while (comma < text.size()) {
    text.remove_prefix(comma + 1);
    comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    if (key == "fps") {
      spec.camera.fps = TRY_CONTEXT(ParseNumber(value, 0.1, 1000.0), "fps");
    } else if (key == "size") {
      const size_t by = std::min(value.find('x'), value.size());
      spec.camera.width = TRY_CONTEXT(ParseNumber(value.substr(0, by), 1, 16384), "size");
      spec.camera.height =
          TRY_CONTEXT(ParseNumber(value.substr(std::min(by + 1, value.size())), 1, 16384), "size");
    } else {
      return Invalid(fmt::format("there is no {}; the keys of a camera are size and fps", Quoted(key)));
    }
  }
  return {};
}

}  // namespace

Result<StreamSpec> ParseStream(const std::string& text) {
  StreamSpec spec{.text = text, .name = WithoutSecrets(text)};
  if (text.starts_with("made:")) {
    auto made = ParseMade(std::string_view(text).substr(5));
    if (!made) return Context("stream " + Quoted(text), made.error());
    spec.made = *std::move(made);
    return spec;
  }
  if (text.starts_with("v4l2:") || text.starts_with("/dev/video")) {
    const Status read = ParseCamera(std::string_view(text).substr(text.starts_with("v4l2:") ? 5 : 0), spec);
    if (!read) return Context("stream " + Quoted(text), read.error());
    return spec;
  }
  if (text.starts_with("http://") || text.starts_with("rtsp://")) {
    const bool rtsp = text.starts_with("rtsp");
    spec.kind = rtsp ? StreamKind::kRtsp : StreamKind::kMjpegHttp;
    TRY_CONTEXT(SplitStreamUrl(text, rtsp ? kRtspPort : kHttpPort), "stream " + Quoted(spec.name));
  } else if (text.find("://") != std::string::npos) {
    return Invalid(fmt::format("stream {}: give made:..., http://..., rtsp://..., /dev/videoN or a file",
                               Quoted(spec.name)));
  } else {
    spec.kind = StreamKind::kFile;
    spec.path = text;
  }
  return spec;
}

}  // namespace weir::watch
