#include "cluster/rank.h"

#include <gtest/gtest.h>

#include <map>

namespace weir::cluster {
namespace {

Result<std::optional<Rank>> Find(std::map<std::string, std::string> set) {
  return FindRank([&](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

TEST(FindRank, ReadsEachLaunchersVariables) {
  EXPECT_EQ(**Find({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}}), (Rank{1, 4, "srun"}));
  EXPECT_EQ(**Find({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}}), (Rank{2, 3, "mpirun"}));
  EXPECT_EQ(**Find({{"JOB_COMPLETION_INDEX", "5"}}), (Rank{5, 0, "an Indexed Job"}));
  EXPECT_EQ(**Find({{"JOB_COMPLETION_INDEX", "5"}, {"WORLD_SIZE", "8"}}), (Rank{5, 8, "an Indexed Job"}));
  EXPECT_EQ(**Find({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), (Rank{0, 2, "RANK and WORLD_SIZE"}));
  EXPECT_EQ(*Find({}), std::nullopt);
}

TEST(FindRank, TakesMpirunsRanksWithinASlurmJob) {
  EXPECT_EQ((**Find({{"SLURM_PROCID", "0"},
                     {"SLURM_NTASKS", "1"},
                     {"OMPI_COMM_WORLD_RANK", "1"},
                     {"OMPI_COMM_WORLD_SIZE", "2"}}))
                .rank,
            1);
}

TEST(FindRank, NamesAVariableThatIsWrong) {
  const auto word = Find({{"SLURM_PROCID", "one"}, {"SLURM_NTASKS", "2"}});
  ASSERT_FALSE(word);
  EXPECT_NE(word.error().message.find("SLURM_PROCID"), std::string::npos);
  EXPECT_FALSE(Find({{"RANK", "2"}, {"WORLD_SIZE", "2"}}));
}

}  // namespace
}  // namespace weir::cluster
