// The calls of a camera's driver (Video4Linux 2), so that tests can stand in for one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace weir::watch {

// One thread at a time.
class CameraDriver {
 public:
  virtual ~CameraDriver() = default;
  // ioctl(2), again after EINTR: 0, or the number of the error.
  virtual int Control(unsigned long request, void* argument) = 0;
  // Maps a buffer of the driver; it stays mapped as long as this lives.
  virtual Result<std::span<const std::byte>> Map(size_t offset, size_t length) = 0;
  // Waits until a frame is ready, for at most `longest`. Returns false if none came.
  virtual Result<bool> Wait(Duration longest) = 0;
};

using OpenCamera = std::function<Result<std::unique_ptr<CameraDriver>>(const std::string& path)>;

// Opens a device of this host. kIo names it.
Result<std::unique_ptr<CameraDriver>> OpenCameraDevice(const std::string& path);

}  // namespace weir::watch
