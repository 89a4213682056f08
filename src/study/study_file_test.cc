#include "study/study_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::study {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kWhole = R"(study: quick
model: made/tiny
data: made/pictures
server: weir
factors:
  architecture: [in-process, microservice]
  protocol: [http, grpc]
  batch: [1, 8]
fixed: {engine: "emulated:base=0.2ms,per_item=0.4ms", in_flight: 4, data_path: files}
repeats: 5
trial: {images: 1500}
network: {rate_gbit_per_s: 5}
seed: 7
targets: {p99_ms: 50, price_per_hour: {in-process: 1.0, microservice: 1.6}}
)";

std::string WhyNot(const std::string& yaml) {
  const auto study = ParseStudy(yaml);
  return study ? "" : study.error().message;
}

TEST(ParseStudy, ReadsTheDesignsExample) {
  const auto study = ParseStudy(kWhole);
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->name, "quick");
  EXPECT_EQ(study->data, "made/pictures");
  EXPECT_EQ(study->repeats, 5);
  EXPECT_EQ(study->seed, 7u);
  EXPECT_EQ(study->trial.images, 1500);
  EXPECT_EQ(study->trial.batches, 30);
  EXPECT_EQ(study->server_host, std::nullopt);
  EXPECT_EQ(study->targets.p99_ms, 50);
  EXPECT_EQ(study->targets.price_per_hour.at("microservice"), 1.6);
  ASSERT_EQ(study->factors.size(), 3u);
  EXPECT_EQ(study->factors[2].factor, "batch");
  EXPECT_EQ(study->factors[2].levels, (std::vector<Json>{1, 8}));
  const Json json = study->ToJson();
  EXPECT_EQ(json["fixed"]["model"], Json::array({"made/tiny"}));
  EXPECT_EQ(json["fixed"]["network"][0]["rate_gbit_per_s"], 5.0);
  EXPECT_EQ(json["design"], "factorial");
}

TEST(ParseStudy, TakesAListAtTheTopForAFactor) {
  const auto study = ParseStudy(
      "study: s\nmodel: [a, b]\nserver: [weir, {name: triton, url: \"http://h:1\"}]\nfactors: {batch: "
      "[1]}\n");
  ASSERT_TRUE(study) << study.error().message;
  ASSERT_EQ(study->factors.size(), 3u);
  EXPECT_EQ(study->factors[0].levels, (std::vector<Json>{"a", "b"}));
  EXPECT_EQ(study->factors[1].levels[1]["name"], "triton");
}

TEST(ParseStudy, WantsNoModelWhereEveryServerKnowsItsOwn) {
  const std::string server = "study: s\nserver: {url: \"http://h:1\"";
  EXPECT_EQ(WhyNot(server + ", model: m}\nfixed: {load: closed}\n"), "");
  EXPECT_THAT(WhyNot(server + "}\nfixed: {load: closed}\n"), HasSubstr("wants model"));
}

TEST(ParseStudy, KnowsNumbersFromQuotedTexts) {
  EXPECT_EQ(WhyNot("study: s\nmodel: m\nfixed: {batch: 8}\n"), "");
  EXPECT_EQ(WhyNot("study: s\nmodel: m\nfixed: {batch: \"8\"}\n"),
            "line 3: fixed.batch: \"8\" is not a whole number from 1 to 65536");
  EXPECT_EQ(WhyNot("study: s\nmodel: \"8\"\n"), "");
}

TEST(ParseStudy, NamesTheLineOfALevelThatIsWrong) {
  EXPECT_EQ(WhyNot("study: s\nmodel: m\nfactors:\n  batch:\n    - 1\n    - two\n"),
            "line 6: factors.batch: \"two\" is not a whole number from 1 to 65536");
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nfactors:\n  protocol: [http, gprc]\n"),
              StartsWith("line 4: factors.protocol: \"gprc\" is none of http, grpc; did you mean grpc?"));
  EXPECT_EQ(WhyNot("study: s\nmodel: m\nfactors: {batch: [1, 2, 1]}\n"),
            "line 3: factors.batch: the level 1 is there twice");
}

TEST(ParseStudy, RefusesANameThatIsNoOneLine) {
  for (const char* name : {"\"a\\nb\"", "\"a\\tb\"", "\"a\\x7fb\"", "../a", "a/b"}) {
    EXPECT_THAT(WhyNot("model: m\nstudy: " + std::string(name) + "\n"),
                StartsWith("line 2: study: a name has no / and no control character"))
        << name;
  }
  EXPECT_EQ(WhyNot("study: Größe, 2 Kerne\nmodel: m\n"), "");
}

TEST(ParseStudy, RefusesUnknownKeysWithTheNearestKnown) {
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nrepeat: 3\n"),
              StartsWith("line 3: repeat: no such key, did you mean repeats?"));
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nfactors: {bach: [1]}\n"),
              StartsWith("line 3: factors.bach: no factor \"bach\", did you mean batch?"));
  EXPECT_THAT(WhyNot("study: s\nmodel: m\ntrial: {picture: 3}\n"),
              StartsWith("line 3: trial.picture: no such key"));
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nnetwork: {rat_gbit_per_s: 3}\n"),
              HasSubstr("did you mean rate_gbit_per_s?"));
}

TEST(ParseStudy, RefusesWhatIsThereTwice) {
  EXPECT_EQ(WhyNot("study: s\nmodel: m\nstudy: t\n"), "line 3: study: is there twice");
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nfactors: {batch: [1]}\nfixed: {batch: 2}\n"),
              HasSubstr("batch is given twice"));
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nfixed: {batch: 2}\nbase: {batch: 4}\n"),
              HasSubstr("batch is fixed"));
}

TEST(ParseStudy, WantsANameAndAModel) {
  EXPECT_THAT(WhyNot("model: m\n"), HasSubstr("wants study: its name"));
  EXPECT_THAT(WhyNot("study: s\n"), HasSubstr("wants model"));
  EXPECT_THAT(WhyNot(""), HasSubstr("wants keys and values"));
}

TEST(ParseStudy, LetsNoTrialBeShorterThanThirtyBatches) {
  EXPECT_THAT(WhyNot("study: s\nmodel: m\ntrial: {batches: 10}\n"),
              StartsWith("line 3: trial.batches: \"10\" is not a whole number from 30"));
  EXPECT_THAT(WhyNot("study: s\nmodel: m\ntrial: {images: 10, seconds: 3}\n"),
              HasSubstr("either seconds, or images, passes and responses"));
}

TEST(ParseStudy, ReadsTheResponseTimesThatATrialMeasures) {
  EXPECT_EQ(ParseStudy("study: s\nmodel: m\ntrial: {responses: 100}\n")->trial.responses, 100);
  EXPECT_THAT(WhyNot("study: s\nmodel: m\ntrial: {responses: 100, seconds: 3}\n"),
              HasSubstr("either seconds"));
}

TEST(ParseStudy, WantsAListOnlyWhereLevelsVary) {
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nfixed: {batch: [1, 2]}\n"), HasSubstr("wants one level"));
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nfactors: {batch: []}\n"), HasSubstr("at least one level"));
}

TEST(ParseStudy, ReadsAStarWithMoreCombinations) {
  const auto study = ParseStudy(R"(study: s
model: m
data: d
design: star
base: {batch: 8, mode: async}
reference: {batch: 1}
factors: {batch: [1, 8]}
also:
  - {architecture: [microservice, distributed], batch: 1}
except:
  - {architecture: distributed, batch: 1, why: too slow}
figures:
  - {title: One, x: batch, series: [mode], where: [{mode: async}, {mode: sync, batch: [1]}]}
)");
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->layout, Layout::kStar);
  ASSERT_EQ(study->also.size(), 1u);
  EXPECT_EQ(study->also[0][0].levels.size(), 2u);
  EXPECT_EQ(study->except[0].why, "too slow");
  EXPECT_EQ(study->except[0].when.size(), 2u);
  EXPECT_EQ(study->reference[0].levels[0], 1);
  EXPECT_EQ(study->figures[0].x, "batch");
  EXPECT_EQ(study->figures[0].where.size(), 2u);
}

TEST(ParseStudy, HasASecondNodeOrAShapedLinkAndNotBoth) {
  const auto study = ParseStudy("study: s\nmodel: m\nnetwork: {hosts: {server: user@host}}\n");
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->server_host, "user@host");
  EXPECT_EQ(study->fixed.size(), 1u);  // the model
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nnetwork: {rate_gbit_per_s: 5, hosts: {server: user@host}}\n"),
              HasSubstr("network has hosts"));
  EXPECT_THAT(
      WhyNot("study: s\nmodel: m\nnetwork: {hosts: {server: user@host}}\nalso: [{network: variable}]\n"),
      HasSubstr("network has hosts"));
}

TEST(ParseStudy, NamesTheHostsOfTheClients) {
  const std::string hosts =
      "study: s\nmodel: m\nnetwork: {hosts: {server: user@host, clients: [u@a, u@b]}}\n";
  const auto study = ParseStudy(hosts + "factors: {clients: [1, 2]}\n");
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->client_hosts, (std::vector<std::string>{"u@a", "u@b"}));
  EXPECT_EQ(study->ToJson()["client_hosts"].size(), 2u);
  EXPECT_THAT(WhyNot(hosts + "factors: {clients: [1, 3]}\n"), HasSubstr("names 2 hosts"));
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nnetwork: {hosts: {server: user@host, clients: [\"a,b\"]}}\n"),
              HasSubstr("is no host"));
  EXPECT_THAT(WhyNot("study: s\nmodel: m\nnetwork: {hosts: {server: user@host, clients: []}}\n"),
              HasSubstr("wants a list"));
}

TEST(ParseStudy, DrawsFiguresAlongFactorsOfNumbers) {
  const auto of = [](const std::string& figure) {
    return WhyNot("study: s\nmodel: m\nfactors: {batch: [1, 8]}\nfigures:\n  - {title: T, " + figure + "}\n");
  };
  EXPECT_EQ(of("x: batch"), "");
  EXPECT_THAT(of("x: bach"), StartsWith("line 5: figures.x: no factor \"bach\", did you mean batch?"));
  EXPECT_THAT(of("x: batch, series: mod"),
              StartsWith("line 5: figures.series: no factor \"mod\", did you mean mode?"));
  EXPECT_THAT(of("x: protocol"), StartsWith("line 5: figures.x: protocol has no numbers"));
  EXPECT_THAT(of("x: network"), HasSubstr("has no numbers"));
  EXPECT_THAT(of("x: in_flight"), HasSubstr("figure \"T\": no configuration has in_flight, its x"));
}

TEST(ParseStudy, SaysWhatIsNoYaml) {
  EXPECT_THAT(WhyNot("study: [s\n"), HasSubstr("not YAML"));
  EXPECT_THAT(WhyNot("study: s\n  model: m\n"), StartsWith("line 2: "));
}

TEST(ParseStudy, IsNotDrownedInAliases) {
  std::string nested =
      "study: s\nmodel: m\nfactors:\n  placement:\n    - server: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    nested += "      k" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) nested += (k == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    nested += "]\n";
  }
  EXPECT_THAT(WhyNot(nested), HasSubstr("too large or too deep"));
}

}  // namespace
}  // namespace weir::study
