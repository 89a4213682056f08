#include "prepare/testing/pictures.h"

#include <filesystem>

#include "base/file.h"
#include "base/seed.h"
#include "image/encode.h"

namespace weir::prepare::testing_pictures {

std::string EncodedNoise(int width, int height, uint64_t seed, bool png) {
  image::Pixels pixels{width, height, 3, {}};
  Random random = Seed(seed).MakeRandom();
  for (int i = 0; i < width * height * 3; ++i) pixels.data.push_back(static_cast<uint8_t>(random.Next()));
  return (png ? image::EncodePng(pixels) : image::EncodeJpeg(pixels, {})).value();
}

Feed MakeFeed(int64_t count) {
  Feed feed{.count = count, .classes = {"even", "odd"}};
  feed.get = [](int64_t i) -> FedPicture {
    FedPicture picture{"in/" + std::to_string(i) + "\xff", static_cast<int>(i % 2), Bytes()};
    if (i == 5) {
      picture.encoded = std::unexpected(image::Reject{image::RejectReason::kUnreadable, "Permission denied"});
      return picture;
    }
    const int64_t same_as = i == 8 ? 2 : i;
    std::string file = EncodedNoise(40 + static_cast<int>(same_as % 9), 33, static_cast<uint64_t>(same_as),
                                    same_as % 3 == 0);
    if (i % 7 == 6) file.resize(file.size() / 2);
    picture.encoded = Bytes::Copy(file);
    return picture;
  };
  feed.name = [](int64_t i) { return "in/" + std::to_string(i) + "\xff"; };
  feed.label = [](int64_t i) { return static_cast<int>(i % 2); };
  feed.describe = [](int64_t i) { return "in/" + std::to_string(i) + "\n"; };
  return feed;
}

std::map<std::string, std::string> ReadAll(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[entry.path().lexically_relative(folder)] = ReadTextFile(entry.path()).value();
    }
  }
  return files;
}

}  // namespace weir::prepare::testing_pictures
