// The pictures of a tar archive, and the label of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "image/reject.h"

namespace weir::prepare {

struct ArchivePicture {
  std::string name;  // the member's, raw bytes, without "./" and slashes at its front
  int64_t offset = 0, bytes = 0;
  std::string label;        // as its member has it; empty: none
  std::string label_place;  // the member of the label
};

// Tells what an archive holds and does not give.
struct ArchiveReject {
  std::string name;
  image::Reject reject;
};

struct ArchiveContents {
  std::vector<ArchivePicture> pictures;  // in the archive's order
  std::vector<ArchiveReject> not_taken;
  std::vector<std::string> unused_labels;  // names of .cls members that belong to no picture
};

// Reads an archive's headers, and with `with_labels` its .cls members. Endings count in any case. The label
// of a picture is the .cls with its name less its last ending, wherever it lies in the archive; or else the
// one .cls of its WebDataset key (its name up to the first dot of its last part). Links to members of the
// archive are pictures, too. kCorrupt for two members of one name, and where two labels are meant for one
// picture, or a label could be another picture's; errors as dataset::ScanTar.
Result<ArchiveContents> ReadArchive(const std::string& path, const UniqueFd& fd, bool with_labels);

}  // namespace weir::prepare
