// Pictures for tests, good and bad ones, and whole folders to compare.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "dataset/set.h"
#include "prepare/feed.h"

namespace weir::prepare::testing_pictures {

inline constexpr dataset::SetFormat kFormats[] = {dataset::SetFormat::kFiles, dataset::SetFormat::kTar,
                                                  dataset::SetFormat::kTfrecord, dataset::SetFormat::kRaw};

// A picture of noise as a JPEG or PNG.
std::string EncodedNoise(int width, int height, uint64_t seed, bool png);

// `count` pictures of varied sizes in two classes; every seventh is cut, picture 5 could not be read at all,
// and picture 8 is picture 2 once more.
Feed MakeFeed(int64_t count);

// Every file of a folder by its path in it.
std::map<std::string, std::string> ReadAll(const std::string& folder);

}  // namespace weir::prepare::testing_pictures
