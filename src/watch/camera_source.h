// Cameras of this host, through Video4Linux 2: MJPEG or YUYV, with the driver's own capture times.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "watch/camera_driver.h"
#include "watch/source.h"

namespace weir::watch {

// The capture time is the driver's stamp where that is on the monotonic clock; else the arrival. Gaps in the
// driver's own count are frames that were lost before this program saw them.
class CameraSource final : public Source {
 public:
  CameraSource(StreamSpec spec, const SourceOptions& options, const Clock& clock, OpenCamera open);
  ~CameraSource() override;

  Status Connect(Instant until) override;
  Result<std::optional<SourceFrame>> Read(Instant until) override;

 private:
  Status CheckDevice();
  Status SetFormat();
  Status SetRate();
  Status Begin();
  void Close();
  Error Failure(const char* what, int error) const;
  std::optional<SourceFrame> FrameOf(std::span<const std::byte> data);

  const StreamSpec spec_;
  const SourceOptions options_;
  const Clock& clock_;
  const OpenCamera open_;
  std::unique_ptr<CameraDriver> driver_;
  std::vector<std::span<const std::byte>> buffers_;
  int width_ = 0, height_ = 0;
  size_t step_ = 0;  // bytes of a row of YUYV
  bool jpeg_ = false;
  std::optional<uint32_t> last_sequence_;
};

// Returns RGB pixels of YUYV (4:2:2, limited range, BT.601). Pure. REQUIRES: `data` holds height rows of
// `step` bytes, each with two bytes a pixel; an even width.
image::Pixels FromYuyv(std::span<const std::byte> data, int width, int height, size_t step);

}  // namespace weir::watch
