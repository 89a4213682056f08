// A made stream as JPEGs, one a frame.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch/made_scene.h"
#include "watch/made_video.h"

namespace weir::watch {

// A loop of pictures, encoded once. Only the strip with the code is encoded again for each frame: the JPEGs
// have a restart marker after each row of blocks, so rows of one picture can stand in another.
class MadeClip {
 public:
  static constexpr int kPhases = MadeScene::kPhases;
  // kInternal if the encoder fails.
  static Result<std::shared_ptr<const MadeClip>> Create(const MadeSpec& spec, int width, int height);

  // The JPEG of picture `phase` (0 to kPhases - 1) with this code.
  Result<std::string> Encode(int phase, uint16_t stream, uint32_t counter, Duration captured_wall) const;
  // Where its persons are, by number; a person's look does not change.
  const std::vector<Box>& Persons(int phase) const { return persons_[static_cast<size_t>(phase)]; }

 private:
  int width_ = 0, quality_ = 0;
  // For each phase: up to the first scan row, and from the strip's end on.
  std::vector<std::string> heads_, tails_;
  std::vector<std::vector<Box>> persons_;
};

// Returns the length of the headers up to the scan, and the offsets of the restart markers in it. nullopt if
// `jpeg` is not a baseline JPEG with one scan.
struct ScanLayout {
  size_t scan = 0, end = 0;      // of the entropy-coded data
  std::vector<size_t> restarts;  // offsets of the markers' 0xFF
};
std::optional<ScanLayout> FindScan(std::string_view jpeg);

}  // namespace weir::watch
