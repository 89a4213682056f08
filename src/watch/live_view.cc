#include "watch/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "image/encode.h"

namespace weir::watch {

void LiveView::Begin(int streams) {
  MutexLock lock(mutex_);
  state_ = {};
  shown_.assign(static_cast<size_t>(streams), {});
}

void LiveView::Update(results::WatchLive state) {
  MutexLock lock(mutex_);
  state_ = std::move(state);
}

void LiveView::Show(int stream, const results::WatchEvent& event, Picture picture) {
  MutexLock lock(mutex_);
  Shown& shown = shown_[static_cast<size_t>(stream)];
  if (shown.event && shown.event->captured_s > event.captured_s) return;
  shown = {event, std::move(picture)};
}

results::WatchLive LiveView::State() const {
  MutexLock lock(mutex_);
  results::WatchLive state = state_;
  for (size_t i = 0; i < state.tiles.size() && i < shown_.size(); ++i) state.tiles[i].last = shown_[i].event;
  return state;
}

Result<Bytes> LiveView::Jpeg(int stream) const {
  Picture picture;
  {
    MutexLock lock(mutex_);
    if (stream < 0 || static_cast<size_t>(stream) >= shown_.size() ||
        !shown_[static_cast<size_t>(stream)].event)
      return Fail(ErrorCode::kNotFound, fmt::format("stream {} has shown no frame", stream));
    picture = shown_[static_cast<size_t>(stream)].picture;
  }
  if (!picture.jpeg.empty()) return picture.jpeg;
  constexpr int kQuality = 80, kMostWidth = 640;
  if (picture.planar) {
    const image::PlanarPixels& planar = *picture.planar;
    const int width = std::min(planar.width, kMostWidth);
    const int height = std::max(1, static_cast<int>(int64_t{planar.height} * width / planar.width));
    image::Pixels pixels;
    image::PlanarResizer().Resize(
        planar, {{0, 0, planar.width, planar.height}, width, height, {0, 0, width, height}}, pixels);
    return Bytes::Copy(TRY(image::EncodeJpeg(pixels, {.quality = kQuality, .standard_tables = true})));
  }
  if (!picture.pixels) return Fail(ErrorCode::kNotFound, fmt::format("stream {} has no picture", stream));
  return Bytes::Copy(TRY(image::EncodeJpeg(*picture.pixels, {.quality = kQuality, .standard_tables = true})));
}

}  // namespace weir::watch
