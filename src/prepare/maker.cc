#include "prepare/maker.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "dataset/hash.h"
#include "dataset/shard_format.h"

namespace weir::prepare {
namespace {

size_t SetCount(const MakerOptions& options) { return std::max<size_t>(1, options.geometries.size()); }

// BGR is an order for tensors and raw records; picture files are RGB, and whoever reads them swaps.
std::vector<dataset::Geometry> GeometriesToMake(const MakerOptions& options) {
  std::vector<dataset::Geometry> geometries = options.geometries;
  for (dataset::Geometry& geometry : geometries) {
    if (options.format != dataset::SetFormat::kRaw && geometry.channels == dataset::Channels::kBgr)
      geometry.channels = dataset::Channels::kRgb;
  }
  return geometries;
}

}  // namespace

StageTimes& StageTimes::operator+=(const StageTimes& other) {
  read += other.read;
  network += other.network;
  check += other.check;
  decode += other.decode;
  resize += other.resize;
  encode += other.encode;
  write += other.write;
  return *this;
}

Maker::Maker(const MakerOptions& options, Judge judge, const Clock& clock)
    : options_(options), judge_(std::move(judge)), clock_(clock) {
  if (options.geometries.empty()) return;
  preparer_.emplace(dataset::Preparer::OfAll(
      GeometriesToMake(options), {.decode = options.decode, .shrink = options.shrink, .clock = &clock}));
}

void Maker::Reject(const image::Reject& reject, Outcome& outcome) const {
  outcome.made.assign(SetCount(options_), std::unexpected(reject));
}

Result<Outcome> Maker::Make(const Feed& feed, int64_t index) {
  const Instant begin = clock_.Now();
  Outcome outcome;
  if (feed.state) outcome.state = feed.state(index);
  FedPicture picture = feed.get(index);
  (picture.from_network ? outcome.times.network : outcome.times.read) = clock_.Now() - begin;
  outcome.source = std::move(picture.source);
  outcome.label = picture.label;
  if (!picture.encoded) {
    if (picture.encoded.error().reason == image::RejectReason::kVanished) {
      return Fail(
          ErrorCode::kIo,
          fmt::format("{}: was there when it was listed, and cannot be had any more ({}): see that it is "
                      "there and that its store answers, and run the same command again, which goes "
                      "on from here",
                      EscapeBytes(outcome.source), picture.encoded.error().detail));
    }
    Reject(picture.encoded.error(), outcome);
    return outcome;
  }
  if (feed.state && feed.state(index) != outcome.state) {
    return Fail(ErrorCode::kIo,
                fmt::format("{}: changed while it was read: run the same command again, which goes "
                            "on from here",
                            EscapeBytes(outcome.source)));
  }
  const Bytes& encoded = *picture.encoded;
  outcome.bytes_in = std::ssize(encoded.span());
  const Instant read = clock_.Now();
  const image::Accepted<void> good = Check(encoded, outcome);
  outcome.times.check = clock_.Now() - read;
  if (!good) {
    Reject(good.error(), outcome);
  } else if (preparer_) {
    TRY_STATUS(Prepare(encoded, outcome));
  } else {
    const Instant checked = clock_.Now();
    outcome.made.push_back(TakeAsItIs(encoded));
    outcome.times.decode = clock_.Now() - checked;
  }
  return outcome;
}

image::Accepted<void> Maker::Check(const Bytes& encoded, Outcome& outcome) {
  outcome.source_hash = dataset::HashOf(encoded.span());
  if (options_.sha256) outcome.source_sha256 = dataset::Sha256Of(encoded.span());
  if (outcome.bytes_in < options_.min_bytes) {
    return std::unexpected(
        image::Reject{image::RejectReason::kTooFewBytes,
                      fmt::format("{} bytes, under {}", outcome.bytes_in, options_.min_bytes)});
  }
  return judge_ ? judge_(encoded.span()) : image::Accepted<void>();
}

// The file as it is, once it has been read to its end. One pixel is enough to ask for.
image::Accepted<Made> Maker::TakeAsItIs(const Bytes& encoded) {
  const image::PictureInfo info = TRY(image::ReadPictureInfo(encoded.span(), options_.decode));
  const image::Window pixel{0, 0, 1, 1};
  TRY_STATUS(decoder_.Decode(encoded.span(), info, pixel, options_.decode, scratch_));
  return Made{.bytes = encoded,
              .extension = dataset::ExtensionOf(info.format),
              .hash = dataset::HashOf(encoded.span()),
              .sha256 = options_.sha256 ? dataset::Sha256Of(encoded.span()) : "",
              .width = info.width,
              .height = info.height};
}

Result<Made> Maker::Encode(const image::Pixels& pixels) {
  Made made{.width = pixels.width, .height = pixels.height};
  if (options_.format == dataset::SetFormat::kRaw) {
    made.bytes = Bytes::Copy(std::as_bytes(std::span(pixels.data)));
  } else {
    const bool jpeg = options_.encoding == Encoding::kJpeg;
    made.bytes = Bytes::Copy(TRY(jpeg ? image::EncodeJpeg(pixels, options_.jpeg) : image::EncodePng(pixels)));
    made.extension = jpeg ? "jpg" : "png";
  }
  made.hash = dataset::HashOf(made.bytes.span());
  if (options_.sha256) made.sha256 = dataset::Sha256Of(made.bytes.span());
  return made;
}

Status Maker::Prepare(const Bytes& encoded, Outcome& outcome) {
  const auto results = preparer_->PrepareAll(encoded.span());
  const dataset::PrepareTimes times = preparer_->TakeTimes();
  outcome.times.decode += times.decode;
  outcome.times.resize += times.resize;
  const Instant begin = clock_.Now();
  for (const auto& pixels : results) {
    if (pixels) {
      outcome.made.push_back(TRY_CONTEXT(Encode(**pixels), EscapeBytes(outcome.source)));
    } else {
      outcome.made.push_back(std::unexpected(pixels.error()));
    }
  }
  outcome.times.encode += clock_.Now() - begin;
  return {};
}

}  // namespace weir::prepare
