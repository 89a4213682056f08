#include "prepare/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/thread.h"
#include "data/prepare.h"
#include "data/set_writer.h"
#include "prepare/in_order.h"

namespace weir::prepare {
namespace {

constexpr int64_t kWaitingPerWorker = 4;  // pictures done that wait for one before them

std::string_view ExtensionOf(data::PictureFormat format) {
  switch (format) {
    case data::PictureFormat::kJpeg:
      return "jpg";
    case data::PictureFormat::kPng:
      return "png";
    case data::PictureFormat::kTiff:
      return "tif";
    case data::PictureFormat::kGif:
      return "gif";
    case data::PictureFormat::kBmp:
      return "bmp";
    case data::PictureFormat::kWebp:
      return "webp";
  }
  return "";
}

// A picture as it goes into the set.
struct Made {
  Bytes bytes;
  std::string_view extension;
};

struct Outcome {
  std::string source;
  std::optional<int> label;
  int64_t bytes_in = 0;
  Result<data::Accepted<Made>> made;  // an error breaks the making off, a reject does not
};

// BGR is an order for tensors and raw records; picture files are RGB, and whoever reads them swaps.
data::Geometry GeometryToMake(const Options& options) {
  data::Geometry geometry = options.geometry.value_or(data::Geometry{});
  if (options.format == data::SetFormat::kFiles && geometry.channels == data::Channels::kBgr) {
    geometry.channels = data::Channels::kRgb;
  }
  return geometry;
}

// What one worker keeps from picture to picture.
class Maker {
 public:
  explicit Maker(const Options& options)
      : options_(options), preparer_(GeometryToMake(options), options.decode) {}

  Outcome Make(FedPicture picture) {
    const int64_t bytes_in = picture.encoded ? static_cast<int64_t>(picture.encoded->size()) : 0;
    return {std::move(picture.source), picture.label, bytes_in, Fate(std::move(picture.encoded))};
  }

 private:
  Result<data::Accepted<Made>> Fate(data::Accepted<Bytes> encoded) {
    if (!encoded) return Rejected(std::move(encoded).error());
    if (static_cast<int64_t>(encoded->size()) < options_.min_bytes) {
      return Rejected({data::RejectReason::kTooFewBytes,
                       fmt::format("{} bytes, under {}", encoded->size(), options_.min_bytes)});
    }
    if (!options_.geometry) return Check(*std::move(encoded));
    return Prepare(*encoded);
  }

  static data::Accepted<Made> Rejected(data::Reject reject) { return std::unexpected(std::move(reject)); }

  // The file as it is, once it has been read to its end. One pixel is enough to ask for.
  data::Accepted<Made> Check(Bytes encoded) {
    const data::Accepted<data::PictureInfo> info = data::ReadPictureInfo(encoded.span(), options_.decode);
    if (!info) return Rejected(info.error());
    const data::Window pixel{0, 0, 1, 1};
    const auto decoded = decoder_.Decode(encoded.span(), *info, pixel, options_.decode, scratch_);
    if (!decoded) return Rejected(decoded.error());
    return Made{std::move(encoded), ExtensionOf(info->format)};
  }

  Result<data::Accepted<Made>> Prepare(const Bytes& encoded) {
    const data::Accepted<const data::Pixels*> pixels = preparer_.Prepare(encoded.span());
    if (!pixels) return Rejected(pixels.error());
    if (options_.format == data::SetFormat::kRaw) {
      return Made{Bytes::Copy(std::as_bytes(std::span((*pixels)->data))), ""};
    }
    const bool jpeg = options_.encoding == Encoding::kJpeg;
    const std::string file =
        TRY(jpeg ? data::EncodeJpeg(**pixels, options_.jpeg) : data::EncodePng(**pixels));
    return Made{Bytes::Copy(file), jpeg ? "jpg" : "png"};
  }

  const Options& options_;
  data::Preparer preparer_;
  data::Decoder decoder_;
  data::Pixels scratch_;
};

Status CheckOptions(const Options& options) {
  if (options.format == data::SetFormat::kRaw && (!options.geometry || !options.geometry->OutputSize())) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "raw records need pictures of one size: give a recipe with a crop, or a resize to width and height");
  }
  if (options.jpeg.quality < 1 || options.jpeg.quality > 100) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("JPEG quality {} is not within 1 to 100", options.jpeg.quality));
  }
  if (options.workers < 0 || options.replicate < 0 || options.min_bytes < 0) {
    return Fail(ErrorCode::kInvalidArgument, "workers, replicate and min_bytes may not be negative");
  }
  return {};
}

data::SetFacts FactsToMake(const Feed& feed, const Options& options) {
  data::SetFacts facts;
  facts.format = options.format;
  facts.geometry = options.geometry;
  facts.classes = feed.classes;
  if (options.geometry) {
    facts.size = options.geometry->OutputSize();
    facts.channels = options.geometry->channel_count();
  }
  return facts;
}

// Writes one making after the other, on one thread.
class Making {
 public:
  Making(data::SetWriter writer, const Options& options, int64_t count,
         const std::function<void(const Progress&)>& progress)
      : writer_(std::move(writer)), options_(options), progress_(progress) {
    state_.total = std::max(count, options.replicate);
  }

  Status Write(const Outcome& outcome) {
    bytes_in_ += outcome.bytes_in;
    const data::Accepted<Made> made = TRY_CONTEXT(outcome.made, outcome.source);
    if (made) {
      data::SetEntry entry = TRY(writer_.Add({.source = outcome.source,
                                              .label = outcome.label,
                                              .bytes = made->bytes.span(),
                                              .extension = made->extension}));
      if (options_.replicate > 0) originals_.push_back(std::move(entry));
    } else {
      TRY_STATUS(writer_.AddReject(outcome.source, made.error()));
    }
    Tell();
    return {};
  }

  // Copies in turn until there are as many as were asked for.
  Status Replicate(const std::stop_token& stop) {
    const auto images = static_cast<int64_t>(originals_.size());
    if (images == 0) return {};
    for (int64_t i = 0; images + i < options_.replicate; ++i) {
      if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped while copying");
      TRY_STATUS(writer_.Repeat(originals_[static_cast<size_t>(i % images)]));
      Tell();
    }
    return {};
  }

  Result<PrepareSummary> Finish() {
    const data::SetFacts facts = TRY(writer_.Finish());
    PrepareSummary summary;
    summary.images = facts.images;
    summary.rejected = facts.rejected;
    summary.bytes_in = bytes_in_;
    summary.bytes_out = facts.bytes;
    return summary;
  }

 private:
  void Tell() {
    state_.done += 1;
    state_.total = std::max(state_.total, state_.done);
    if (progress_) progress_(state_);
  }

  data::SetWriter writer_;
  const Options& options_;
  const std::function<void(const Progress&)>& progress_;
  Progress state_;
  int64_t bytes_in_ = 0;
  std::vector<data::SetEntry> originals_;  // where copies are wanted
};

// Has `workers` threads make the feed's pictures, and writes them here in their order.
Status MakeAll(const Feed& feed, const Options& options, int workers, const std::stop_token& stop,
               Making& making) {
  InOrder<Outcome> outcomes(feed.count, workers * kWaitingPerWorker);
  std::vector<std::jthread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.push_back(StartThread(fmt::format("prepare-{}", i), [&](std::stop_token) {
      Maker maker(options);
      while (const std::optional<int64_t> index = outcomes.Take()) {
        outcomes.Put(*index, maker.Make(feed.get(*index)));
      }
    }));
  }
  Status status;
  for (int64_t i = 0; i < feed.count && status; ++i) {
    status = stop.stop_requested()
                 ? Fail(ErrorCode::kCancelled, fmt::format("stopped after {} of {}", i, feed.count))
                 : making.Write(outcomes.Next());
  }
  outcomes.Stop();
  return status;
}

}  // namespace

Result<Feed> FeedFrom(const data::Listing& listing, uint64_t max_file_bytes) {
  Feed feed;
  for (const auto& set : listing.sets) {
    if (set->facts().format == data::SetFormat::kRaw) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: raw records cannot be prepared again; give the pictures they were made of",
                              set->folder()));
    }
    if (set != listing.sets.front() && set->facts().classes != listing.sets.front()->facts().classes) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} and {} name their classes differently: prepare them one by one",
                              listing.sets.front()->folder(), set->folder()));
    }
    feed.classes = set->facts().classes;
  }
  feed.count = static_cast<int64_t>(listing.inputs.size());
  feed.get = [&listing, max_file_bytes](int64_t index) {
    const data::Input& input = listing.inputs[static_cast<size_t>(index)];
    return FedPicture{std::string(input.relative_name()), input.label,
                      data::LoadInput(listing, input, max_file_bytes)};
  };
  return feed;
}

Result<PrepareSummary> PrepareSet(const Feed& feed, const Options& options, const Clock& clock,
                                  std::stop_token stop,
                                  const std::function<void(const Progress&)>& progress) {
  TRY_STATUS(CheckOptions(options));
  const Instant start = clock.Now();
  data::SetWriter writer = TRY(data::SetWriter::Create(options.folder, FactsToMake(feed, options)));
  Making making(std::move(writer), options, feed.count, progress);
  const int wanted = options.workers > 0 ? options.workers : UsableCpus();
  const int workers = static_cast<int>(std::clamp<int64_t>(feed.count, 1, wanted));
  TRY_STATUS(MakeAll(feed, options, workers, stop, making));
  TRY_STATUS(making.Replicate(stop));
  PrepareSummary summary = TRY(making.Finish());
  summary.wall_s = Seconds(clock.Now() - start);
  if (summary.wall_s > 0) summary.images_per_s = static_cast<double>(feed.count) / summary.wall_s;
  return summary;
}

}  // namespace weir::prepare
