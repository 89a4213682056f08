// Folders that a probe writes into on a storage, each with an owner tag that other hosts can read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace weir::probe {

// The host of a process, as an owner tag names it. `boot_id` differs after each start of the kernel.
struct HostIdentity {
  std::string host_name, boot_id;
  bool operator==(const HostIdentity&) const = default;
};
HostIdentity ReadHostIdentity();

// A folder "weir-probe.ID.set" with its owner tag, the file "weir-probe.ID.owner" beside it. The tag is whole
// and locked (flock) before the folder appears, and the lock lasts as long as this. ID is drawn by chance. So
// a live set is never taken for an orphan, also if several hosts share the storage. One thread at a time.
class OwnedFolder {
 public:
  // kIo also where the file system has no locks.
  static Result<OwnedFolder> Make(const std::string& path);
  OwnedFolder(OwnedFolder&& other) noexcept = default;
  OwnedFolder& operator=(OwnedFolder&&) = delete;
  ~OwnedFolder() = default;  // leaves the folder; see Remove

  const std::string& path() const { return path_; }
  // Removes the files that the probe made in the folder, the folder if nothing else is in it, and the tag.
  void Remove();

 private:
  OwnedFolder(std::string path, std::string tag, UniqueFd lock)
      : path_(std::move(path)), tag_(std::move(tag)), lock_(std::move(lock)) {}

  std::string path_, tag_;  // empty: moved from or removed
  UniqueFd lock_;
};

// The name of sample `number` below an owned folder: "d0000/s00000000.bin".
std::string SampleName(int64_t number);

// The name of the prepared set of repeat `number` below an owned folder: "p0000".
std::string PreparedName(int number);
// Removes the files of a prepared set from a folder of such a name, and the folder if nothing else is in it.
// Never follows links.
void RemovePrepared(const std::string& folder);

struct Orphans {
  std::vector<std::string> removed;  // folders
  // Folders of another host, or of this one before it was restarted: only its user knows whether they live.
  std::vector<std::string> foreign;
};
// Removes the sets below `path` whose tag names `self` and whose lock nobody holds. Files that the probe did
// not make stay, and the folder with them. Never follows links.
Orphans RemoveOrphans(const std::string& path, const HostIdentity& self);
// Says of a foreign folder who may remove it.
std::string ForeignText(const std::string& folder);

}  // namespace weir::probe
