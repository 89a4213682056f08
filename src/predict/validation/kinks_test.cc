#include "predict/validation/kinks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

// Three machines with twelve configurations on 1, 2 and 4 devices; on machine "slow" every third takes
// `times` as long with 4.
Data Measured(double times) {
  MadeSet made = MadeSet::Make();
  const std::string from = "  run: [precision]";
  made.spec.replace(made.spec.rfind(from), from.size(), from + "\n  machine: [system]");
  std::string rows = "row_id,gpu,network,batch,gpu_count,precision,system,items_per_s\n";
  int id = 0;
  for (const char* system : {"one", "two", "slow"}) {
    for (const char* network : {"small", "middle", "large", "wide"}) {
      for (const int batch : {8, 32, 64}) {
        for (const int devices : {1, 2, 4}) {
          double rate = MadeSet::ItemsPerSecond("gpu-a", network, batch, devices);
          if (system == std::string("slow") && devices == 4 && batch == 64) rate /= times;
          rows +=
              fmt::format("r{},gpu-a,{},{},{},fp32,{},{:.6g}\n", id++, network, batch, devices, system, rate);
        }
      }
    }
  }
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
                    .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
  Spec spec = *ParseSpec(made.spec);
  auto made_rows = *MakeRows(spec, facts, Table(*ParseCsv(rows)), WithTarget::kYes);
  return Data::Make(std::move(spec), std::move(made_rows));
}

TEST(FindKinks, FindsAMachineWhoseTimesJumpWhereOthersDoNot) {
  const auto kinks = FindKinks(Measured(1.7));
  ASSERT_EQ(kinks.size(), 1U);
  EXPECT_EQ(kinks[0].hardware, "gpu-a");
  EXPECT_EQ(kinks[0].machine, "slow");
  EXPECT_EQ(kinks[0].from, 2);
  EXPECT_EQ(kinks[0].to, 4);
  EXPECT_NEAR(kinks[0].factor, 1.7, 1e-3);
  EXPECT_EQ(kinks[0].configurations, 12);
  EXPECT_EQ(kinks[0].rows.size(), 4U);
}

TEST(FindKinks, FindsNothingWhereMachinesScaleAlike) { EXPECT_TRUE(FindKinks(Measured(1.1)).empty()); }

}  // namespace
}  // namespace weir::predict
