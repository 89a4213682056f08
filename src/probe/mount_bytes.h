// Bytes that network mounts delivered, as the kernel counts them for each mount.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe/storage_set.h"

namespace weir::probe {

// Returns the bytes that the server of the NFS mount at `mount_point` delivered, by the text of
// /proc/self/mountstats ("serverread"). Nullopt if it has no such mount, or no such number for it.
std::optional<uint64_t> ServerReadBytes(std::string_view mountstats, std::string_view mount_point);

// Returns the NFS mount points in that text, as they stand in it.
std::vector<std::string> NfsMountPoints(std::string_view mountstats);

// The NFS mounts that samples lie on. Samples elsewhere make it empty: only a mount that has all of them says
// how much was delivered.
class MountMeter {
 public:
  static MountMeter Of(const std::vector<StorageSample>& samples);
  // Bytes so far; nullopt where a sample lies on no NFS mount. They are of all readers on this host.
  std::optional<uint64_t> Read() const;
  // Bytes since `before` was read.
  std::optional<double> Since(const std::optional<uint64_t>& before) const;

 private:
  std::vector<std::string> mount_points_;
};

}  // namespace weir::probe
