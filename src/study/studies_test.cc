// The study files that ship with the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "study/design.h"
#include "study/result.h"

namespace weir::study {
namespace {

struct Shipped {
  StudyFile study;
  Design design;
};

Shipped Read(const std::string& name) {
  const auto text = ReadTextFile(std::string(WEIR_STUDIES) + "/" + name + ".yaml");
  EXPECT_TRUE(text) << text.error().message;
  auto study = ParseStudy(text.value_or(""));
  EXPECT_TRUE(study) << name << ": " << study.error().message;
  auto design = MakeDesign(study.value_or(StudyFile{}));
  EXPECT_TRUE(design) << name << ": " << design.error().message;
  return {study.value_or(StudyFile{}), design.value_or(Design{})};
}

struct Expected {
  const char* name;
  size_t configurations, trials, dropped;
};

class StudiesTest : public testing::TestWithParam<Expected> {};

TEST_P(StudiesTest, HasAsManyTrialsAsItSays) {
  const auto [name, configurations, trials, dropped] = GetParam();
  const Shipped shipped = Read(name);
  EXPECT_EQ(shipped.study.name, name);
  EXPECT_EQ(shipped.design.configurations.size(), configurations);
  EXPECT_EQ(shipped.design.trials.size(), trials);
  EXPECT_EQ(MakeDesignResult(shipped.design).dropped.size(), dropped);
}

INSTANTIATE_TEST_SUITE_P(
    Shipped, StudiesTest,
    testing::Values(Expected{"quick", 30, 5 * 33, 0}, Expected{"demo", 3, 3 * 6, 0},
                    Expected{"architectures", 3, 5 * 6, 0}, Expected{"factors-2020", 37, 800, 0},
                    Expected{"resnet50-cpu", 24, 10 * 27, 0}, Expected{"pair", 2, 20 * 5, 0},
                    Expected{"threads", 8, 10 * 11, 2}, Expected{"payload", 32, 10 * 35, 0},
                    Expected{"precision", 6, 10 * 9, 0}, Expected{"triton-vs-weir", 12, 20 * 15, 0},
                    Expected{"variable-link", 8, 20 * 11, 0}, Expected{"what-if", 12, 5 * 15, 0},
                    Expected{"gpu", 39, 420, 0}, Expected{"phases", 6, 90, 0}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::ranges::replace(name, '-', '_');
      return name;
    });

TEST(Studies, AreAllTested) {
  std::set<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator(WEIR_STUDIES)) {
    if (file.is_regular_file()) found.insert(file.path().filename());
  }
  EXPECT_EQ(found, (std::set<std::string>{"quick.yaml", "demo.yaml", "factors-2020.yaml", "resnet50-cpu.yaml",
                                          "pair.yaml", "threads.yaml", "payload.yaml", "precision.yaml",
                                          "triton-vs-weir.yaml", "variable-link.yaml", "what-if.yaml",
                                          "architectures.yaml", "gpu.yaml", "phases.yaml"}));
}

TEST(Studies, HaveThePapersFigureFour) {
  const Design design = Read("factors-2020").design;
  std::map<std::string, std::set<int64_t>> batches;
  for (const Configuration& one : design.configurations) {
    const Json& factors = one.factors;
    const bool plain = factors.value("load", "") == "application" &&
                       factors.value("page_cache", "") == "warm" && factors.value("replication", 0) == 1 &&
                       factors.value("data_path", "") == "files-at-model-size";
    const bool in_process = factors["architecture"] == "in-process";
    const bool mode =
        in_process ? factors["mode"] == "sync" : factors["mode"] == "async" && factors["protocol"] == "grpc";
    if (plain && mode)
      batches[factors["architecture"].get<std::string>()].insert(factors["batch"].get<int64_t>());
  }
  ASSERT_EQ(batches.size(), 3u);
  for (const auto& [architecture, sizes] : batches)
    EXPECT_EQ(sizes, (std::set<int64_t>{1, 2, 4, 8, 16, 32, 64, 128})) << architecture;
}

TEST(Studies, CompareTheServersAlike) {
  const Design design = Read("triton-vs-weir").design;
  int triton = 0;
  for (const Configuration& one : design.configurations) triton += one.factors["server"].is_object();
  EXPECT_EQ(triton, 6);
}

}  // namespace
}  // namespace weir::study
