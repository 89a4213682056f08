#include "feed/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace weir::feed {
namespace {

using ::testing::HasSubstr;

Box BoxOf(const AugmentOptions& options, int64_t width, int64_t height, uint64_t item) {
  Chance chance(1, 0, item, Operation::kCrop);
  return DrawBox(options, width, height, chance);
}

TEST(Crop, LiesInThePictureAndObeysItsRanges) {
  const AugmentOptions options;
  for (uint64_t item = 0; item < 20'000; ++item) {
    const Box box = BoxOf(options, 500, 375, item);
    ASSERT_GE(box.x, 0);
    ASSERT_GE(box.y, 0);
    ASSERT_LE(box.x + box.width, 500);
    ASSERT_LE(box.y + box.height, 375);
    const double area = static_cast<double>(box.width * box.height) / (500 * 375);
    ASSERT_GT(area, 0.078);
    ASSERT_LT(area, 1.005);
    const double aspect = static_cast<double>(box.width) / static_cast<double>(box.height);
    ASSERT_GT(aspect, 0.74);
    ASSERT_LT(aspect, 1.35);
  }
}

// Areas that fit whatever the aspect are accepted at once, so they keep the uniform law.
TEST(Crop, DrawsSmallAreasUniformly) {
  AugmentOptions options;
  options.area_high = 0.5;
  std::vector<double> areas;
  for (uint64_t item = 0; item < 20'000; ++item) {
    const Box box = BoxOf(options, 2000, 2000, item);
    areas.push_back(static_cast<double>(box.width * box.height) / 4e6);
  }
  std::ranges::sort(areas);
  double distance = 0;
  for (size_t i = 0; i < areas.size(); ++i) {
    const double expected = (areas[i] - 0.08) / 0.42,
                 seen = static_cast<double>(i) / static_cast<double>(areas.size());
    distance = std::max(distance, std::abs(expected - seen));
  }
  EXPECT_LT(distance * std::sqrt(static_cast<double>(areas.size())), 1.95);
}

TEST(Crop, OfAPictureThatNoBoxFitsIsTheLargestCentredOne) {
  AugmentOptions options;
  options.area_low = 0.9;
  EXPECT_EQ(BoxOf(options, 1000, 100, 1), (Box{433, 0, 133, 100}));
  EXPECT_EQ(BoxOf(options, 100, 1000, 1), (Box{0, 433, 100, 133}));
  EXPECT_EQ(BoxOf(options, 65'535, 1, 1), (Box{32'767, 0, 1, 1}));
  EXPECT_EQ(BoxOf(options, 1, 1, 1), (Box{0, 0, 1, 1}));
}

TEST(Jitter, DrawsEveryOrderAndTheWholeRange) {
  const JitterOptions options{.brightness = 0.4, .contrast = 0.2, .saturation = 2, .hue = 0.1};
  std::map<std::vector<JitterDraw::Step>, int> orders;
  double lowest = 9, highest = -9, lowest_saturation = 9;
  for (uint64_t item = 0; item < 24'000; ++item) {
    Chance chance(1, 0, item, Operation::kJitter);
    const JitterDraw draw = DrawJitter(options, chance);
    ++orders[{draw.order.begin(), draw.order.end()}];
    lowest = std::min(lowest, draw.brightness);
    highest = std::max(highest, draw.brightness);
    lowest_saturation = std::min(lowest_saturation, draw.saturation);
    ASSERT_LE(std::abs(draw.hue), 0.1);
  }
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 150);
  EXPECT_NEAR(lowest, 0.6, 0.001);
  EXPECT_NEAR(highest, 1.4, 0.001);
  EXPECT_NEAR(lowest_saturation, 0, 0.001);  // never below 0
}

TEST(Draw, OfOneOperationIsNotChangedByAnother) {
  AugmentOptions plain, rich;
  rich.rotation = 20;
  rich.jitter.brightness = 0.4;
  rich.grayscale = 0.2;
  int flips = 0, greys = 0;
  for (uint64_t item = 0; item < 10'000; ++item) {
    const Draws a = Draw(plain, 300, 200, {1, 2, item}), b = Draw(rich, 300, 200, {1, 2, item});
    ASSERT_EQ(a.box, b.box);
    ASSERT_EQ(a.flip, b.flip);
    ASSERT_LE(std::abs(b.angle), 20);
    flips += a.flip ? 1 : 0;
    greys += b.grayscale ? 1 : 0;
  }
  EXPECT_NEAR(flips, 5000, 200);
  EXPECT_NEAR(greys, 2000, 200);
}

TEST(Augment, RefusesWhatIsOutOfRange) {
  const auto refusal = [](auto change) {
    AugmentOptions options;
    change(options);
    const Status checked = CheckAugment(options);
    return checked ? std::string("accepted") : checked.error().message;
  };
  EXPECT_EQ(refusal([](AugmentOptions&) {}), "accepted");
  EXPECT_THAT(refusal([](AugmentOptions& o) { o.area_low = std::numeric_limits<double>::quiet_NaN(); }),
              HasSubstr("smallest area is nan"));
  EXPECT_THAT(refusal([](AugmentOptions& o) { o.area_high = 2; }), HasSubstr("largest area"));
  EXPECT_THAT(refusal([](AugmentOptions& o) { o.width = 0; }), HasSubstr("width is 0"));
  EXPECT_THAT(refusal([](AugmentOptions& o) { o.flip = 1.5; }), HasSubstr("flip"));
  EXPECT_THAT(refusal([](AugmentOptions& o) { o.jitter.hue = 0.6; }), HasSubstr("hue"));
  EXPECT_THAT(refusal([](AugmentOptions& o) { o.std[1] = 0; }), HasSubstr("std"));
  EXPECT_THAT(refusal([](AugmentOptions& o) { o.aspect_high = 0.1; }), HasSubstr("largest aspect"));
}

TEST(Augment, HasATextForEachRecipe) {
  AugmentOptions a, b;
  EXPECT_EQ(Canonical(a), Canonical(b));
  b.mean[0] = 0.5;
  EXPECT_EQ(Canonical(a), Canonical(b));  // uint8 is not normalised
  a.type = b.type = ValueType::kFloat32;
  EXPECT_NE(Canonical(a), Canonical(b));
  b = a;
  b.flip = 0.25;
  EXPECT_NE(Canonical(a), Canonical(b));
}

}  // namespace
}  // namespace weir::feed
