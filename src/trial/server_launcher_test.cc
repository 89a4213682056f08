#include "trial/server_launcher.h"

#include <gtest/gtest.h>

#include "base/thread.h"

namespace weir::trial {
namespace {

TEST(StreamsOf, GivesEachInstanceItsStreams) {
  const model::Model model;
  EXPECT_EQ(StreamsOf({.streams = 3}, model), 3);
  EXPECT_EQ(StreamsOf({.instances = 2}, model), 2);
  EXPECT_EQ(StreamsOf({.streams = 1, .instances = 2}, model), 2);
  EXPECT_EQ(StreamsOf({.streams = 2, .instances = 4}, model), 8);
}

TEST(StreamsOf, LeavesAnAcceleratorItsOwn) {
  EXPECT_EQ(StreamsOf({.engine = "emulated:per_item=1ms", .streams = 3}, {}), 0);
}

TEST(StreamsOf, IsTheModelsOrOneAThreadWhereNothingIsSaid) {
  model::Model model;
  model.parameters["streams"] = "5";
  EXPECT_EQ(StreamsOf({}, model), 5);
  EXPECT_EQ(StreamsOf({.threads = 1}, {}), 1);
  EXPECT_EQ(StreamsOf({}, {}), UsableCpus());
}

}  // namespace
}  // namespace weir::trial
