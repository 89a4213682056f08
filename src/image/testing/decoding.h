// Checks that the decoder's tests make for every format.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "image/decode.h"
#include "image/testing/pictures.h"

namespace weir::image::testing {

inline Accepted<Pixels> DecodeWindow(std::string_view encoded, const Window& window,
                                     const DecodeOptions& options = {}) {
  Decoder decoder;
  const PictureInfo info = TRY(ReadPictureInfo(AsBytes(encoded), options));
  Pixels pixels;
  TRY_STATUS(decoder.Decode(AsBytes(encoded), info, window, options, pixels));
  return pixels;
}

inline Accepted<Pixels> DecodeWhole(std::string_view encoded, const DecodeOptions& options = {}) {
  const PictureInfo info = TRY(ReadPictureInfo(AsBytes(encoded), options));
  return DecodeWindow(encoded, {0, 0, info.width, info.height}, options);
}

inline RejectReason ReasonFor(std::string_view encoded, const DecodeOptions& options = {}) {
  const auto decoded = DecodeWhole(encoded, options);
  EXPECT_FALSE(decoded);
  return decoded ? RejectReason::kFailed : decoded.error().reason;
}

inline std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

inline Pixels Cut(const Pixels& whole, const Window& window) {
  Pixels part{window.width, window.height, whole.channels, {}};
  for (int y = 0; y < window.height; ++y) {
    const size_t from = (static_cast<size_t>(window.y + y) * whole.width + window.x) * whole.channels;
    part.data.insert(part.data.end(), whole.data.begin() + from,
                     whole.data.begin() + from + static_cast<size_t>(window.width) * whole.channels);
  }
  return part;
}

// Decodes as a whole and in part to exactly `wanted`, and not at all when cut.
inline void ExpectDecodesTo(std::string_view encoded, const Pixels& wanted, int tolerance = 0) {
  const auto whole = DecodeWhole(encoded);
  ASSERT_TRUE(whole) << whole.error().detail;
  ASSERT_EQ(whole->width, wanted.width);
  ASSERT_EQ(whole->height, wanted.height);
  ASSERT_EQ(whole->channels, wanted.channels);
  ASSERT_EQ(whole->data.size(), wanted.data.size());
  for (size_t i = 0; i < wanted.data.size(); ++i) ASSERT_NEAR(whole->data[i], wanted.data[i], tolerance) << i;
  const int width = wanted.width;
  const int height = wanted.height;
  for (const Window& window : {Window{width / 3, height / 4, width / 2, height / 2},
                               Window{width - 1, height - 1, 1, 1}, Window{0, height / 2, width, 1}}) {
    const auto part = DecodeWindow(encoded, window);
    ASSERT_TRUE(part) << part.error().detail;
    EXPECT_EQ(part->data, Cut(*whole, window).data);
  }
}

inline void ExpectEveryCutIsFound(std::string_view encoded) {
  for (size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_FALSE(DecodeWhole(encoded.substr(0, size))) << "cut to " << size << " of " << encoded.size();
  }
}

}  // namespace weir::image::testing
