#include "watch/camera_source.h"

#include <fmt/format.h>
#include <linux/videodev2.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/json.h"

namespace weir::watch {
namespace {

constexpr uint32_t kBuffers = 4;
constexpr uint32_t kType = V4L2_BUF_TYPE_VIDEO_CAPTURE;

std::string FourCharacters(uint32_t format) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += static_cast<char>(format >> 8 * i & 0x7F);
  return EscapeBytes(text);
}

bool IsJpeg(uint32_t format) { return format == V4L2_PIX_FMT_MJPEG || format == V4L2_PIX_FMT_JPEG; }

uint8_t ToByte(int value) { return static_cast<uint8_t>(std::clamp(value >> 8, 0, 255)); }

}  // namespace

image::Pixels FromYuyv(std::span<const std::byte> data, int width, int height, size_t step) {
  image::Pixels pixels{.width = width, .height = height, .channels = 3};
  pixels.data.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  uint8_t* to = pixels.data.data();
  for (int y = 0; y < height; ++y) {
    const auto* from = reinterpret_cast<const uint8_t*>(data.data()) + static_cast<size_t>(y) * step;
    for (int x = 0; x < width; x += 2, from += 4) {
      const int u = from[1] - 128, v = from[3] - 128;
      for (const int luma : {from[0], from[2]}) {
        const int scaled = 298 * (luma - 16) + 128;
        *to++ = ToByte(scaled + 409 * v);
        *to++ = ToByte(scaled - 100 * u - 208 * v);
        *to++ = ToByte(scaled + 516 * u);
      }
    }
  }
  return pixels;
}

CameraSource::CameraSource(StreamSpec spec, const SourceOptions& options, const Clock& clock, OpenCamera open)
    : spec_(std::move(spec)), options_(options), clock_(clock), open_(std::move(open)) {}

CameraSource::~CameraSource() { Close(); }

void CameraSource::Close() {
  if (driver_) {
    uint32_t type = kType;
    driver_->Control(VIDIOC_STREAMOFF, &type);
  }
  buffers_.clear();
  driver_.reset();
  last_sequence_.reset();
}

Error CameraSource::Failure(const char* what, int error) const {
  std::string words = fmt::format("{}: {}: {}", spec_.name, what, std::generic_category().message(error));
  if (error == EBUSY) words += ": another program uses it";
  return {ErrorCode::kIo, std::move(words)};
}

Status CameraSource::Connect(Instant) {
  Close();
  driver_ = TRY(open_(spec_.path));
  TRY_STATUS(CheckDevice());
  TRY_STATUS(SetFormat());
  TRY_STATUS(SetRate());
  return Begin();
}

Status CameraSource::CheckDevice() {
  v4l2_capability facts{};
  if (driver_->Control(VIDIOC_QUERYCAP, &facts) != 0)
    return Fail(ErrorCode::kUnsupported, fmt::format("{} is no camera", spec_.name));
  const uint32_t can =
      (facts.capabilities & V4L2_CAP_DEVICE_CAPS) != 0 ? facts.device_caps : facts.capabilities;
  constexpr uint32_t kNeeded = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
  if ((can & kNeeded) != kNeeded)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} captures no video into mapped buffers; a camera may have several devices: "
                            "try the one before it",
                            spec_.name));
  return {};
}

// Asks for MJPEG, then for YUYV. The driver answers with what it will really give.
Status CameraSource::SetFormat() {
  v4l2_format format{};
  for (const uint32_t wanted : {V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_YUYV}) {
    format = {};
    format.type = kType;
    format.fmt.pix.width = static_cast<uint32_t>(spec_.camera.width);
    format.fmt.pix.height = static_cast<uint32_t>(spec_.camera.height);
    format.fmt.pix.pixelformat = wanted;
    format.fmt.pix.field = V4L2_FIELD_ANY;
    if (const int error = driver_->Control(VIDIOC_S_FMT, &format); error != 0)
      return std::unexpected(Failure("its format cannot be set", error));
    jpeg_ = IsJpeg(format.fmt.pix.pixelformat);
    if (jpeg_ || format.fmt.pix.pixelformat == V4L2_PIX_FMT_YUYV) break;
  }
  const v4l2_pix_format& given = format.fmt.pix;
  if (!jpeg_ && given.pixelformat != V4L2_PIX_FMT_YUYV)
    return Fail(ErrorCode::kUnsupported, fmt::format("{} gives {}, neither MJPEG nor YUYV", spec_.name,
                                                     FourCharacters(given.pixelformat)));
  if (int64_t{given.width} * given.height > options_.max_pixels)
    return Fail(ErrorCode::kOverloaded,
                fmt::format("{}: {}x{} pixels are over the limit", spec_.name, given.width, given.height));
  width_ = static_cast<int>(given.width);
  height_ = static_cast<int>(given.height);
  step_ = std::max<size_t>(given.bytesperline, size_t{2} * given.width);
  if (!jpeg_ && width_ % 2 != 0)
    return Fail(ErrorCode::kUnsupported, fmt::format("{}: YUYV of odd width", spec_.name));
  return {};
}

// A driver without rates keeps its own.
Status CameraSource::SetRate() {
  if (spec_.camera.fps <= 0) return {};
  v4l2_streamparm rate{};
  rate.type = kType;
  rate.parm.capture.timeperframe = {1000, static_cast<uint32_t>(1000 * spec_.camera.fps + 0.5)};
  const int error = driver_->Control(VIDIOC_S_PARM, &rate);
  if (error != 0 && error != ENOTTY && error != EINVAL)
    return std::unexpected(Failure("its rate cannot be set", error));
  return {};
}

Status CameraSource::Begin() {
  v4l2_requestbuffers request{};
  request.count = kBuffers;
  request.type = kType;
  request.memory = V4L2_MEMORY_MMAP;
  if (const int error = driver_->Control(VIDIOC_REQBUFS, &request); error != 0)
    return std::unexpected(Failure("its buffers", error));
  if (request.count < 2) return std::unexpected(Failure("its buffers", ENOMEM));
  for (uint32_t i = 0; i < request.count; ++i) {
    v4l2_buffer buffer{};
    buffer.type = kType;
    buffer.memory = V4L2_MEMORY_MMAP;
    buffer.index = i;
    if (const int error = driver_->Control(VIDIOC_QUERYBUF, &buffer); error != 0)
      return std::unexpected(Failure("its buffers", error));
    buffers_.push_back(TRY_CONTEXT(driver_->Map(buffer.m.offset, buffer.length), spec_.name));
    if (const int error = driver_->Control(VIDIOC_QBUF, &buffer); error != 0)
      return std::unexpected(Failure("its buffers", error));
  }
  uint32_t type = kType;
  if (const int error = driver_->Control(VIDIOC_STREAMON, &type); error != 0)
    return std::unexpected(Failure("it does not start", error));
  return {};
}

// Copies the frame out of the driver's buffer.
std::optional<SourceFrame> CameraSource::FrameOf(std::span<const std::byte> data) {
  SourceFrame frame{.arrived = clock_.Now()};
  if (jpeg_) {
    frame.jpeg = Bytes::Copy(data);
    return frame;
  }
  if (data.size() < step_ * static_cast<size_t>(height_ - 1) + size_t{2} * static_cast<size_t>(width_))
    return std::nullopt;
  const Duration before = ThreadCpuTime();
  frame.pixels = std::make_shared<const image::Pixels>(FromYuyv(data, width_, height_, step_));
  frame.decode_time = ThreadCpuTime() - before;
  frame.width = width_;
  frame.height = height_;
  return frame;
}

Result<std::optional<SourceFrame>> CameraSource::Read(Instant until) {
  if (!TRY_CONTEXT(driver_->Wait(until - clock_.Now()), spec_.name))
    return Fail(ErrorCode::kDeadline, fmt::format("{} gives no frame", spec_.name));
  v4l2_buffer buffer{};
  buffer.type = kType;
  buffer.memory = V4L2_MEMORY_MMAP;
  if (const int error = driver_->Control(VIDIOC_DQBUF, &buffer); error != 0) {
    if (error == EAGAIN) return Fail(ErrorCode::kDeadline, fmt::format("{} gives no frame", spec_.name));
    return std::unexpected(Failure("it gives no more frames", error));
  }
  if (buffer.index >= buffers_.size())
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: its driver names an unknown buffer", spec_.name));
  const auto data = buffers_[buffer.index];
  std::optional<SourceFrame> frame;
  if ((buffer.flags & V4L2_BUF_FLAG_ERROR) == 0)
    frame = FrameOf(data.first(std::min<size_t>(buffer.bytesused, data.size())));
  if (!frame) {
    frame = SourceFrame{.arrived = clock_.Now(),
                        .dropped = DropCause::kUndecodable,
                        .fault = "damaged",
                        .fault_words = "the camera's driver gave part of a frame"};
  }
  if ((buffer.flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) == V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC) {
    frame->captured = Instant(std::chrono::seconds(buffer.timestamp.tv_sec) +
                              std::chrono::microseconds(buffer.timestamp.tv_usec));
    frame->capture_source = CaptureSource::kDriver;
  }
  // The count is of 32 bits and may wrap; one that goes back began anew.
  if (last_sequence_ && buffer.sequence - *last_sequence_ < uint32_t{1} << 31)
    frame->lost_before = std::max<int64_t>(0, int64_t{buffer.sequence - *last_sequence_} - 1);
  last_sequence_ = buffer.sequence;
  if (const int error = driver_->Control(VIDIOC_QBUF, &buffer); error != 0)
    return std::unexpected(Failure("it takes no buffer back", error));
  return frame;
}

}  // namespace weir::watch
