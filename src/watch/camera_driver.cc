#include "watch/camera_driver.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/file.h"

namespace weir::watch {
namespace {

class Device final : public CameraDriver {
 public:
  explicit Device(UniqueFd fd) : fd_(std::move(fd)) {}
  ~Device() override {
    for (const auto& [data, length] : mapped_) ::munmap(data, length);
  }

  int Control(unsigned long request, void* argument) override {
    int done = 0;
    do {
      done = ::ioctl(fd_.get(), request, argument);
    } while (done < 0 && errno == EINTR);
    return done < 0 ? errno : 0;
  }

  Result<std::span<const std::byte>> Map(size_t offset, size_t length) override {
    void* const data = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd_.get(), static_cast<off_t>(offset));
    if (data == MAP_FAILED) return FailErrno("mmap of a camera's buffer", errno);
    mapped_.emplace_back(data, length);
    return std::span(static_cast<const std::byte*>(data), length);
  }

  Result<bool> Wait(Duration longest) override {
    pollfd wanted{fd_.get(), POLLIN, 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(longest, Duration{})).count();
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::min<int64_t>(ms, 1000)));
    if (ready < 0 && errno != EINTR) return FailErrno("poll of a camera", errno);
    return ready > 0;
  }

 private:
  const UniqueFd fd_;
  std::vector<std::pair<void*, size_t>> mapped_;
};

}  // namespace

Result<std::unique_ptr<CameraDriver>> OpenCameraDevice(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return FailErrno(path, errno);
  return std::make_unique<Device>(std::move(fd));
}

}  // namespace weir::watch
