#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/videodev2.h>

#include <cerrno>
#include <deque>

#include "watch/camera_source.h"

namespace weir::watch {
namespace {

using testing::HasSubstr;

// A driver with two formats, four buffers, and the frames that a test gives it.
struct FakeCamera {
  struct Frame {
    std::string bytes;
    uint32_t sequence = 0;
    timeval stamp{};
    uint32_t flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
  };
  uint32_t capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
  uint32_t format = V4L2_PIX_FMT_MJPEG;  // what it gives, whatever is asked for
  uint32_t width = 4, height = 2;
  int busy = 0;  // the error of setting the format
  std::deque<Frame> frames;
  int unplugged = 0;  // the error after the last frame
  std::array<std::string, 4> memory;
  std::deque<uint32_t> queued;
  bool on = false;
};

class FakeDriver final : public CameraDriver {
 public:
  explicit FakeDriver(FakeCamera& camera) : camera_(camera) {
    for (std::string& each : camera_.memory) each.assign(4096, '\0');
  }

  int Control(unsigned long request, void* argument) override {
    switch (request) {
      case VIDIOC_QUERYCAP:
        static_cast<v4l2_capability*>(argument)->capabilities = camera_.capabilities;
        return 0;
      case VIDIOC_S_FMT: {
        v4l2_pix_format& format = static_cast<v4l2_format*>(argument)->fmt.pix;
        format.pixelformat = camera_.format;
        format.width = camera_.width;
        format.height = camera_.height;
        format.bytesperline = 2 * camera_.width;
        return camera_.busy;
      }
      case VIDIOC_S_PARM:
        return ENOTTY;
      case VIDIOC_REQBUFS:
        return 0;
      case VIDIOC_QUERYBUF: {
        auto& buffer = *static_cast<v4l2_buffer*>(argument);
        buffer.m.offset = buffer.index;
        buffer.length = 4096;
        return 0;
      }
      case VIDIOC_QBUF:
        camera_.queued.push_back(static_cast<v4l2_buffer*>(argument)->index);
        return 0;
      case VIDIOC_DQBUF:
        return Dequeue(*static_cast<v4l2_buffer*>(argument));
      case VIDIOC_STREAMON:
        camera_.on = true;
        return 0;
      case VIDIOC_STREAMOFF:
        camera_.on = false;
        return 0;
      default:
        return EINVAL;
    }
  }
  Result<std::span<const std::byte>> Map(size_t offset, size_t length) override {
    return std::as_bytes(std::span(camera_.memory[offset].data(), length));
  }
  Result<bool> Wait(Duration) override { return !camera_.frames.empty() || camera_.unplugged != 0; }

 private:
  int Dequeue(v4l2_buffer& buffer) {
    if (camera_.frames.empty()) return camera_.unplugged;
    const FakeCamera::Frame frame = camera_.frames.front();
    camera_.frames.pop_front();
    buffer.index = camera_.queued.front();
    camera_.queued.pop_front();
    camera_.memory[buffer.index].replace(0, frame.bytes.size(), frame.bytes);
    buffer.bytesused = static_cast<uint32_t>(frame.bytes.size());
    buffer.sequence = frame.sequence;
    buffer.timestamp = frame.stamp;
    buffer.flags = frame.flags;
    return 0;
  }
  FakeCamera& camera_;
};

struct CameraSourceTest : testing::Test {
  FakeCamera camera;
  ManualClock clock{Instant(100s)};
  SourceOptions options;
  CameraSource source{
      {.kind = StreamKind::kCamera, .text = "/dev/video0", .name = "/dev/video0", .path = "/dev/video0"},
      options,
      clock,
      [this](const std::string&) -> Result<std::unique_ptr<CameraDriver>> {
        return std::make_unique<FakeDriver>(camera);
      }};
  SourceFrame Next() {
    auto frame = source.Read(clock.Now() + 1s);
    EXPECT_TRUE(frame) << frame.error().message;
    return frame && *frame ? **frame : SourceFrame{};
  }
};

TEST_F(CameraSourceTest, GivesJpegsWithTheDriversCaptureTimeAndCountsWhatTheDriverLost) {
  ASSERT_TRUE(source.Connect(clock.Now() + 1s));
  EXPECT_TRUE(camera.on);
  camera.frames = {{"one", 7, {99, 500'000}}, {"two", 8, {99, 600'000}}, {"five", 11, {99, 900'000}}};
  const SourceFrame one = Next();
  EXPECT_EQ(one.jpeg.text(), "one");
  EXPECT_EQ(one.captured, Instant(99500ms));
  EXPECT_EQ(one.capture_source, CaptureSource::kDriver);
  EXPECT_EQ(one.lost_before, 0);
  EXPECT_EQ(Next().lost_before, 0);
  EXPECT_EQ(Next().lost_before, 2);
  EXPECT_EQ(camera.queued.size(), 4U) << "the driver has its buffers again";
  EXPECT_EQ(source.Read(clock.Now()).error().code, ErrorCode::kDeadline);
}

TEST_F(CameraSourceTest, AnotherClocksStampIsNoCaptureTime) {
  ASSERT_TRUE(source.Connect(clock.Now() + 1s));
  camera.frames = {{"one", 1, {99, 0}, V4L2_BUF_FLAG_TIMESTAMP_UNKNOWN}};
  EXPECT_FALSE(Next().captured);
}

TEST_F(CameraSourceTest, ConvertsYuyv) {
  camera.format = V4L2_PIX_FMT_YUYV;
  ASSERT_TRUE(source.Connect(clock.Now() + 1s));
  // White, black, grey and a strong red, twice.
  const std::string row{'\xEB', '\x80', '\x10', '\x80', '\x51', '\x5A', '\x51', '\xF0'};
  camera.frames = {{row + row, 1, {}}, {row, 2, {}}};
  const SourceFrame frame = Next();
  ASSERT_TRUE(frame.pixels);
  EXPECT_EQ(frame.pixels->width, 4);
  const auto& data = frame.pixels->data;
  EXPECT_EQ((std::vector<int>(data.begin(), data.begin() + 6)), (std::vector<int>{255, 255, 255, 0, 0, 0}));
  EXPECT_NEAR(data[6], 255, 2);
  EXPECT_NEAR(data[7], 0, 2);
  EXPECT_NEAR(data[8], 0, 2);
  EXPECT_EQ(Next().dropped, DropCause::kUndecodable) << "half a frame";
}

TEST_F(CameraSourceTest, ABrokenFrameCostsItselfAndAnUnpluggedCameraTheConnection) {
  ASSERT_TRUE(source.Connect(clock.Now() + 1s));
  camera.frames = {{"x", 1, {}, V4L2_BUF_FLAG_ERROR}, {"y", 2, {}}};
  EXPECT_EQ(Next().dropped, DropCause::kUndecodable);
  EXPECT_FALSE(Next().dropped);
  camera.unplugged = ENODEV;
  EXPECT_EQ(source.Read(clock.Now() + 1s).error().code, ErrorCode::kIo);
  EXPECT_TRUE(source.Connect(clock.Now() + 1s)) << "it may come back";
}

TEST_F(CameraSourceTest, SaysWhyADeviceCannotBeWatched) {
  const auto why = [&] {
    const Status connected = source.Connect(clock.Now() + 1s);
    return connected ? "" : connected.error().message;
  };
  camera.format = V4L2_PIX_FMT_H264;
  EXPECT_THAT(why(), HasSubstr("gives H264, neither MJPEG nor YUYV"));
  camera.format = V4L2_PIX_FMT_MJPEG;
  camera.busy = EBUSY;
  EXPECT_THAT(why(), HasSubstr("another program uses it"));
  camera.busy = 0;
  camera.capabilities = V4L2_CAP_VIDEO_OUTPUT;
  EXPECT_THAT(why(), HasSubstr("captures no video"));
  camera.capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
  camera.width = 16384;
  camera.height = 16384;
  EXPECT_THAT(why(), HasSubstr("over the limit"));
}

TEST(ParseStream, ReadsCameras) {
  const auto plain = ParseStream("/dev/video2");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->kind, StreamKind::kCamera);
  EXPECT_EQ(plain->path, "/dev/video2");
  const auto more = ParseStream("v4l2:/dev/video0,size=1280x720,fps=15");
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(more->path, "/dev/video0");
  EXPECT_EQ(more->camera.width, 1280);
  EXPECT_EQ(more->camera.height, 720);
  EXPECT_EQ(more->camera.fps, 15);
  EXPECT_THAT(ParseStream("v4l2:/dev/video0,zoom=2").error().message, HasSubstr("size and fps"));
  EXPECT_FALSE(ParseStream("v4l2:"));
}

}  // namespace
}  // namespace weir::watch
