#include "study/factor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "study/level.h"

namespace weir::study {
namespace {

using testing::HasSubstr;

std::string WhyNot(std::string_view factor, const Json& level) {
  const auto checked = CheckLevel(factor, level);
  return checked ? "" : checked.error().message;
}

TEST(Factors, AreThoseOfTheDocumentation) {
  EXPECT_THAT(
      FactorNames(),
      testing::UnorderedElementsAre(
          "architecture", "model", "server", "protocol", "mode", "in_flight", "load", "batch", "data_path",
          "payload", "images", "replication", "engine", "accelerator", "precision", "threads", "streams",
          "instances", "server_batching", "decode_threads", "network", "placement", "page_cache", "device",
          "gpus", "preprocess", "cuda_graph", "servers", "balancer", "clients", "beside", "limits"));
  EXPECT_TRUE(IsFactor("batch"));
  EXPECT_FALSE(IsFactor("Batch"));
}

TEST(Factors, PageOfTheDocumentationIsCurrent) {
  const auto page = ReadTextFile(WEIR_DOCS "/reference/factors.md");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(*page, FactorsPage()) << "build/release/weir study --factors > docs/reference/factors.md";
}

TEST(Factors, FindFactorKnowsEachByItsName) {
  ASSERT_NE(FindFactor("protocol"), nullptr);
  EXPECT_THAT(WordsOf("protocol"), testing::ElementsAre("http", "grpc"));
  EXPECT_EQ(FindFactor("Protocol"), nullptr);
}

TEST(Factors, HaveLevelsThatTheyThemselvesTake) {
  for (const Factor& factor : Factors()) {
    if (factor.otherwise) {
      EXPECT_EQ(CheckLevel(factor.name, *factor.otherwise).value_or(Json()), *factor.otherwise)
          << factor.name;
    }
  }
}

TEST(CheckLevel, RefusesAWordThatIsNoneOfTheFactors) {
  EXPECT_THAT(WhyNot("protocol", "htp"), HasSubstr("\"htp\" is none of http, grpc; did you mean http?"));
  EXPECT_THAT(WhyNot("mode", 3), HasSubstr("3 is none of sync, async"));
  EXPECT_THAT(WhyNot("engine", "tensorrt"), HasSubstr("onnxruntime, openvino"));
}

TEST(CheckLevel, RefusesNumbersBeyondTheFactors) {
  EXPECT_EQ(WhyNot("batch", 1), "");
  EXPECT_THAT(WhyNot("batch", 0), HasSubstr("0 is not a whole number from 1 to 65536"));
  EXPECT_THAT(WhyNot("batch", 1.5), HasSubstr("1.5 is not a whole number"));
  EXPECT_THAT(WhyNot("batch", "8"), HasSubstr("is not a whole number"));
  EXPECT_THAT(WhyNot("threads", 4097), HasSubstr("from 0 to 4096"));
}

TEST(CheckLevel, WritesOutTheShortFormsOfANetwork) {
  EXPECT_EQ(*CheckLevel("network", 5), (Json{{"rate_gbit_per_s", 5.0}}));
  EXPECT_EQ(*CheckLevel("network", "variable"),
            (Json{{"variable", {{"low_gbit_per_s", 1.0}, {"high_gbit_per_s", 5.0}, {"every_ms", 100.0}}}}));
  EXPECT_THAT(WhyNot("network", Json{{"rate", 5}}), HasSubstr("no key \"rate\" here"));
  EXPECT_THAT(WhyNot("network", Json{{"rate_gbit_per_s", 5}, {"variable", Json::object()}}),
              HasSubstr("either"));
  EXPECT_THAT(WhyNot("network", Json{{"variable", {{"low_gbit_per_s", 6}}}}),
              HasSubstr("is above high_gbit_per_s"));
}

TEST(CheckLevel, WantsOneWayToAServerAndItsReadiness) {
  const Json triton{{"command", {"/opt/tritonserver", "--x"}},
                    {"ready", "http://127.0.0.1:1/v2/health/ready"}};
  EXPECT_EQ((*CheckLevel("server", triton))["name"], "tritonserver");
  EXPECT_THAT(WhyNot("server", Json{{"url", "grpc://h:1"}, {"image", "i"}}), HasSubstr("exactly one"));
  EXPECT_THAT(WhyNot("server", Json{{"image", "i"}}), HasSubstr("wants ready"));
  EXPECT_THAT(WhyNot("server", Json{{"url", "ftp://h:1"}}),
              HasSubstr("url: \"ftp://h:1\" is not http://HOST:PORT"));
  EXPECT_EQ(WhyNot("server", Json{{"url", "grpc://h:1"}}), "");
  EXPECT_THAT(WhyNot("server", Json{{"url", "grpc://h:1"}, {"repository", "r"}, {"model", "m"}}),
              HasSubstr("running already"));
  Json with_repository = triton;
  with_repository["repository"] = "models";
  EXPECT_THAT(WhyNot("server", with_repository), HasSubstr("repository wants model"));
  with_repository["model"] = "m";
  EXPECT_EQ(WhyNot("server", with_repository), "");
  EXPECT_TRUE(Offers(*CheckLevel("server", triton), "http"));
  EXPECT_FALSE(Offers(*CheckLevel("server", triton), "grpc"));
}

TEST(CheckLevel, TakesCpusAsTasksetDoes) {
  EXPECT_EQ(*CheckLevel("placement", Json{{"server", 0}, {"client", "1-3,5"}}),
            (Json{{"server", "0"}, {"client", "1-3,5"}}));
  for (const char* bad : {"", "a", "1,", "-1", "1-2-3", "1--2"})
    EXPECT_THAT(WhyNot("placement", Json{{"server", bad}, {"client", "1"}}), HasSubstr("are not CPUs"))
        << bad;
}

TEST(CheckLevel, TakesARateAsALoad) {
  EXPECT_EQ(*CheckLevel("load", Json{{"rate_per_s", 400}}),
            (Json{{"rate_per_s", 400.0}, {"distribution", "poisson"}}));
  EXPECT_THAT(WhyNot("load", Json{{"rate_per_s", 0}}), HasSubstr("rate_per_s: 0 is not within"));
  EXPECT_THAT(WhyNot("load", "open"), HasSubstr("none of application, closed"));
}

TEST(CheckLevel, TakesLiveStreamsAsALoad) {
  const Json streams = *CheckLevel("load", Json{{"streams", 20}, {"fps", 10}});
  EXPECT_EQ(streams, (Json{{"streams", 20}, {"fps", 10.0}, {"deadline_ms", 100.0}}));
  EXPECT_EQ(LevelText("load", streams), "20 streams of 10 frames/s, 100 ms");
  EXPECT_THAT(WhyNot("load", Json{{"streams", 20}}), HasSubstr("wants fps"));
  EXPECT_THAT(WhyNot("load", Json{{"streams", 0}, {"fps", 10}}), HasSubstr("streams: 0"));
  EXPECT_THAT(WhyNot("load", Json{{"streams", 2}, {"fps", 10}, {"rate_per_s", 5}}), HasSubstr("rate_per_s"));
}

TEST(CheckLevel, LimitsAreCoresByPhase) {
  EXPECT_EQ(WhyNot("limits", "none"), "");
  EXPECT_EQ(WhyNot("limits", {{"serve", 1}, {"feed", 0.5}}), "");
  EXPECT_THAT(WhyNot("limits", {{"serv", 1}}), HasSubstr("did you mean serve?"));
  EXPECT_THAT(WhyNot("limits", {{"serve", 0}}), HasSubstr("serve"));
  EXPECT_THAT(WhyNot("limits", 3), HasSubstr("neither none nor"));
}

TEST(LevelText, SaysALevelInAFewWords) {
  EXPECT_EQ(LevelText("batch", 8), "8");
  EXPECT_EQ(NamedLevelText("batch", 8), "batch 8");
  EXPECT_EQ(NamedLevelText("in_flight", 4), "in flight 4");
  EXPECT_EQ(NamedLevelText("protocol", "grpc"), "grpc");
  EXPECT_EQ(NamedLevelText("cuda_graph", "on"), "cuda graph on");
  EXPECT_EQ(NamedLevelText("preprocess", "gpu"), "preprocess gpu");
  EXPECT_EQ(NamedLevelText("page_cache", "cold"), "cold page cache");
  EXPECT_EQ(LevelText("network", *CheckLevel("network", 5)), "5 Gbit/s");
  EXPECT_EQ(LevelText("network", *CheckLevel("network", "variable")), "variable, 1 to 5 Gbit/s");
  EXPECT_EQ(LevelText("server", Json{{"name", "triton"}, {"url", "http://h:1"}}), "triton");
  EXPECT_EQ(LevelText("load", *CheckLevel("load", Json{{"rate_per_s", 400}})), "400/s poisson");
}

}  // namespace
}  // namespace weir::study
