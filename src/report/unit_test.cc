#include "report/unit.h"

#include <gtest/gtest.h>

#include "report/table2.h"

namespace weir::report {
namespace {

TEST(UnitOf, ReadsItFromTheName) {
  EXPECT_EQ(UnitOf("throughput_images_per_s").name, "images/s");
  EXPECT_EQ(UnitOf("stages_ms.infer").name, "ms");
  EXPECT_EQ(UnitOf("resources.server_cpu.mean").name, "cores");
  EXPECT_EQ(UnitOf("resources.steal_percent").name, "%");
  EXPECT_EQ(UnitOf("server_resources.container_memory_bytes.max").name, "MB");
  EXPECT_EQ(UnitOf("server_resources.container_memory_bytes.max").scale, 1e-6);
  EXPECT_EQ(UnitOf("cpu_ms_per_image.infer").name, "ms of CPU time an image");
  EXPECT_EQ(UnitOf("link.gbit_per_s").name, "Gbit/s");
  EXPECT_EQ(UnitOf("wall_s").name, "s");
  EXPECT_EQ(UnitOf("accuracy.top1").name, "");
}

// Both are written by hand: the one holds the other.
TEST(UnitOf, IsThatOfTheTable) {
  for (const Table2Row& row : Table2Rows()) {
    EXPECT_EQ(UnitOf(row.metric).name, row.unit) << row.metric;
    EXPECT_EQ(UnitOf(row.metric).scale, row.scale) << row.metric;
  }
}

TEST(WithUnit, IsTheLabelAloneWithoutOne) {
  EXPECT_EQ(WithUnit("wall_s", "s"), "wall_s (s)");
  EXPECT_EQ(WithUnit("accuracy.top1", ""), "accuracy.top1");
}

TEST(BottleneckMeaning, KnowsEveryBottleneckThatIsNamed) {
  for (const char* bottleneck :
       {"read", "decode", "infer", "network", "in_flight", "cpu", "print", "client", "server", "rate"})
    EXPECT_NE(BottleneckMeaning(bottleneck), "") << bottleneck;
  EXPECT_EQ(BottleneckMeaning("moon"), "");
}

}  // namespace
}  // namespace weir::report
