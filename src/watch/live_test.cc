#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "watch/live_server.h"

namespace weir::watch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

results::WatchLive TwoStreams() {
  results::WatchLive state{.model = "m", .deadline_ms = 100, .elapsed_s = 2, .frames = {.captured = 12}};
  state.latency_ms = results::WatchResult::Times{.n = 10, .mean = 20, .min = 10, .max = 40, .p50 = 18};
  for (const char* name : {"made:", "rtsp://a/\"b\""}) {
    results::WatchLive::Tile& tile = state.tiles.emplace_back();
    tile.stream.name = name;
    tile.stream.frames = {.captured = 6, .answered = 5, .in_time = 4, .dropped = {{"lost", 1}}};
    tile.stream.faults.push_back({.kind = "stalled", .count = 2, .message = "no frame"});
    tile.stream.latency_ms = state.latency_ms;
  }
  return state;
}

results::WatchEvent EventAt(double captured_s, const std::string& name) {
  results::WatchEvent event{.stream = "made:", .sequence = 3, .captured_s = captured_s};
  event.objects.push_back({.box = {0.1, 0.2, 0.3, 0.9}, .label = "", .name = name, .similarity = 0.7});
  return event;
}

std::string BodyOf(const http::HttpResponse& response) {
  std::string text;
  for (const Bytes& part : response.body) text += part.text();
  return text;
}

TEST(LiveView, KeepsTheNewestFrameOfEachStream) {
  LiveView view;
  view.Begin(2);
  view.Update(TwoStreams());
  view.Show(0, EventAt(5, "Ada"), {.jpeg = Bytes::Copy(std::string("new")), .pixels = {}});
  view.Show(0, EventAt(4, "Bob"), {.jpeg = Bytes::Copy(std::string("old")), .pixels = {}});
  EXPECT_EQ(view.Jpeg(0)->text(), "new");
  EXPECT_FALSE(view.Jpeg(1));
  EXPECT_FALSE(view.Jpeg(2));
  const results::WatchLive state = view.State();
  EXPECT_EQ(state.tiles[0].last->objects[0].name, "Ada");
  EXPECT_FALSE(state.tiles[1].last);
  view.Begin(1);
  EXPECT_FALSE(view.Jpeg(0)) << "of an earlier run";
}

TEST(LiveView, EncodesPixelsOnlyWhenAsked) {
  LiveView view;
  view.Begin(1);
  image::Pixels pixels{.width = 32, .height = 16, .channels = 3};
  pixels.data.assign(size_t{32} * 16 * 3, 90);
  view.Show(0, EventAt(1, ""), {.jpeg = {}, .pixels = std::make_shared<const image::Pixels>(pixels)});
  EXPECT_THAT(std::string(view.Jpeg(0)->text()), StartsWith("\xFF\xD8"));
}

TEST(LiveView, EncodesPlanesAtAWidthForThePage) {
  LiveView view;
  view.Begin(1);
  const std::vector<uint8_t> luma(size_t{1280} * 720, 80), chroma(size_t{640} * 360, 128);
  const image::PlanarPixels planes{.planes = {luma.data(), chroma.data(), chroma.data()},
                                   .steps = {1280, 640, 640},
                                   .width = 1280,
                                   .height = 720,
                                   .colours = {}};
  Picture picture;
  picture.planar = std::make_shared<const image::PlanarPixels>(planes);
  view.Show(0, EventAt(1, ""), picture);
  const Bytes jpeg = view.Jpeg(0).value();
  const auto info = image::ReadPictureInfo(std::as_bytes(std::span(jpeg.text())), {.max_pixels = 1 << 20});
  ASSERT_TRUE(info);
  EXPECT_EQ(info->width, 640);
  EXPECT_EQ(info->height, 360);
}

TEST(MetricsText, CountsEachStreamByFateAndFault) {
  const std::string text = MetricsText(TwoStreams());
  EXPECT_THAT(text, HasSubstr("weir_watch_frames_captured_total{number=\"0\",stream=\"made:\"} 6"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "weir_watch_frames_dropped_total{number=\"1\",stream=\"rtsp://a/\\\"b\\\"\",cause=\"lost\"} 1"));
  EXPECT_THAT(text, HasSubstr("kind=\"stalled\"} 2"));
  EXPECT_THAT(text,
              HasSubstr("weir_watch_latency_seconds{number=\"0\",stream=\"made:\",quantile=\"0.5\"} 0.018"));
  EXPECT_THAT(text, HasSubstr("weir_watch_latency_seconds_count{number=\"0\",stream=\"made:\"} 10"));
  EXPECT_THAT(text, HasSubstr("weir_watch_deadline_seconds 0.1"));
}

TEST(AnswerLive, HasAPageItsStateFramesAndMetrics) {
  LiveView view;
  view.Begin(2);
  view.Update(TwoStreams());
  view.Show(1, EventAt(1, "</script><b>"), {.jpeg = Bytes::Copy(std::string("jpeg")), .pixels = {}});
  EXPECT_THAT(BodyOf(AnswerLive("GET", "/", view)), HasSubstr("/state.json"));
  const Json state = *ParseJson(BodyOf(AnswerLive("GET", "/state.json", view)));
  EXPECT_EQ(state["tiles"][1]["last"]["objects"][0]["name"], "</script><b>");
  EXPECT_FALSE(state["tiles"][0].contains("last"));
  EXPECT_EQ(BodyOf(AnswerLive("GET", "/frame/1.jpg", view)), "jpeg");
  for (const char* path :
       {"/frame/0.jpg", "/frame/9.jpg", "/frame/-1.jpg", "/frame/.jpg", "/frame/.jp", "/x"})
    EXPECT_EQ(AnswerLive("GET", path, view).status, 404) << path;
  EXPECT_EQ(AnswerLive("POST", "/", view).status, 405);
  EXPECT_THAT(BodyOf(AnswerLive("GET", "/metrics", view)),
              HasSubstr("# TYPE weir_watch_latency_seconds summary"));
}

}  // namespace
}  // namespace weir::watch
