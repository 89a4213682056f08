#include "study/design.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "study/result.h"

namespace weir::study {
namespace {

using testing::HasSubstr;

StudyFile Parse(const std::string& yaml) {
  auto study = ParseStudy(yaml);
  EXPECT_TRUE(study) << study.error().message;
  return study.value_or(StudyFile{});
}

Design Make(const std::string& yaml) {
  auto design = MakeDesign(Parse(yaml));
  EXPECT_TRUE(design) << design.error().message;
  return design.value_or(Design{});
}

constexpr const char* kFactorial = R"(study: s
model: m
data: d
factors:
  architecture: [in-process, microservice]
  protocol: [http, grpc]
  batch: [1, 8, 32]
repeats: 4
)";

TEST(MakeDesign, MergesWhatComesToTheSameAndKeepsTheReason) {
  const Design design = Make(kFactorial);
  EXPECT_EQ(design.combinations.size(), 12u);
  EXPECT_EQ(design.configurations.size(), 9u);  // 3 in one process, 6 with a server
  const Json json = MakeDesignResult(design).ToJson();
  EXPECT_EQ(json["dropped"].size(), 0u);
  ASSERT_EQ(json["merged"].size(), 3u);
  EXPECT_THAT(json["merged"][0]["why"][0].get<std::string>(), HasSubstr("protocol is not applicable"));
  EXPECT_EQ(design.configurations[0].label, "in-process, batch 1");
  EXPECT_EQ(design.configurations[3].label, "microservice, http, batch 1");
}

TEST(MakeDesign, PlaysEveryConfigurationOnceABlockAndTheReferenceThrice) {
  const Design design = Make(kFactorial);
  ASSERT_EQ(design.trials.size(), 4u * (9 + 3));
  std::set<std::string> ids;
  for (int block = 0; block < 4; ++block) {
    std::multiset<size_t> seen;
    std::vector<Role> roles;
    for (int position = 0; position < 12; ++position) {
      const Trial& trial = design.trials[static_cast<size_t>(block * 12 + position)];
      EXPECT_EQ(trial.block, block);
      EXPECT_EQ(trial.position, position);
      EXPECT_TRUE(ids.insert(trial.id).second);
      roles.push_back(trial.role);
      if (trial.is_reference()) {
        EXPECT_EQ(trial.configuration, design.reference);
      } else {
        seen.insert(trial.configuration);
      }
    }
    EXPECT_EQ(roles[0], Role::kReferenceStart);
    EXPECT_EQ(roles[5], Role::kReferenceMiddle);
    EXPECT_EQ(roles[11], Role::kReferenceEnd);
    EXPECT_EQ(seen, (std::multiset<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  }
}

TEST(MakeDesign, ShufflesEachBlockAnewAndTheSameWayEveryTime) {
  const auto order = [](const Design& design, int block) {
    std::vector<size_t> order;
    for (const Trial& trial : design.trials) {
      if (trial.block == block && !trial.is_reference()) order.push_back(trial.configuration);
    }
    return order;
  };
  const Design design = Make(kFactorial), again = Make(kFactorial);
  EXPECT_EQ(order(design, 0), order(again, 0));
  EXPECT_NE(order(design, 0), order(design, 1));
  EXPECT_NE(order(design, 0), order(Make(std::string(kFactorial) + "seed: 2\n"), 0));
}

// Over many blocks each configuration stands at each place about as often: 3,000 / 9 = 333, of which the
// deviation is 17.
TEST(MakeDesign, FavoursNoPlace) {
  std::string yaml = kFactorial;
  yaml.replace(yaml.find("repeats: 4"), 10, "repeats: 3000");
  std::map<std::pair<size_t, int>, int> times;
  for (const Trial& trial : Make(yaml).trials) {
    if (!trial.is_reference()) ++times[{trial.configuration, trial.position}];
  }
  ASSERT_EQ(times.size(), 81u);
  for (const auto& [where, count] : times) EXPECT_NEAR(count, 333, 90);
}

TEST(MakeDesign, GivesABlockOneSeedAndEachBlockAnother) {
  const Design design = Make(kFactorial);
  EXPECT_EQ(design.trials[0].seed, design.trials[5].seed);
  EXPECT_NE(design.trials[0].seed, design.trials[12].seed);
}

TEST(MakeDesign, DoesNotDependOnTheOrderOfKeys) {
  const Design one =
      Make("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8], mode: [sync, async]}\nrepeats: 2\n");
  const Design other =
      Make("repeats: 2\nfactors: {mode: [sync, async], batch: [1, 8]}\ndata: d\nmodel: m\nstudy: s\n");
  ASSERT_EQ(one.trials.size(), other.trials.size());
  for (size_t i = 0; i < one.trials.size(); ++i) EXPECT_EQ(one.trials[i].id, other.trials[i].id);
}

TEST(MakeDesign, KeepsTheIdOfATrialWhenOthersAreAdded) {
  const auto ids = [](const Design& design) {
    std::set<std::string> ids;
    for (const Trial& trial : design.trials) ids.insert(trial.id);
    return ids;
  };
  const auto few = ids(Make("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nrepeats: 2\n"));
  const auto more = ids(Make("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8, 32]}\nrepeats: 3\n"));
  EXPECT_TRUE(std::ranges::includes(more, few));
}

TEST(MakeDesign, DrawsAStarAroundItsBase) {
  const Design design = Make(R"(study: s
model: m
data: d
design: star
base: {architecture: microservice, batch: 8, protocol: grpc}
factors:
  batch: [1, 8, 32]
  protocol: [http, grpc]
also:
  - {architecture: [in-process, distributed], batch: [1, 8]}
repeats: 1
)");
  // The base, two other batches, one other protocol, and 2 x 2 more.
  EXPECT_EQ(design.configurations.size(), 8u);
  EXPECT_EQ(design.configurations[design.reference].factors["batch"], 8);
  EXPECT_EQ(design.configurations[design.reference].factors["architecture"], "microservice");
  EXPECT_EQ(design.configurations[design.reference].factors["protocol"], "grpc");
  // Named are the architecture and what is not the base's.
  std::set<std::string> labels;
  for (const Configuration& one : design.configurations) labels.insert(one.label);
  EXPECT_EQ(labels, (std::set<std::string>{"microservice", "microservice, batch 1", "microservice, batch 32",
                                           "microservice, http", "in-process", "in-process, batch 1",
                                           "distributed", "distributed, batch 1"}));
  EXPECT_EQ(design.unnamed, "grpc, batch 8");
}

TEST(MakeDesign, NamesWhatTheBaseOfAStarLeavesOpen) {
  const Design design = Make(
      "study: s\nmodel: m\ndata: d\ndesign: star\nbase: {mode: async, batch: 1}\n"
      "also: [{in_flight: [4]}]\nrepeats: 1\n");
  std::set<std::string> labels;
  for (const Configuration& one : design.configurations) labels.insert(one.label);
  EXPECT_EQ(labels, (std::set<std::string>{"s", "in flight 4"}));
}

TEST(MakeDesign, DoesNotNameWhatOnlyTheRulesChange) {
  const Design design = Make(
      "study: s\nmodel: m\ndata: d\nfactors: {mode: [sync, async]}\nfixed: {in_flight: 4}\nrepeats: 1\n");
  EXPECT_EQ(design.configurations[0].label, "sync");
  EXPECT_EQ(design.configurations[1].label, "async");
}

TEST(MakeDesign, LeavesOutWhatTheStudyExceptsAndSaysWhy) {
  const Design design = Make(std::string(kFactorial) +
                             "except:\n  - {architecture: microservice, batch: [8, 32], why: too slow}\n");
  EXPECT_EQ(design.configurations.size(), 5u);
  const Json json = MakeDesignResult(design).ToJson();
  ASSERT_EQ(json["dropped"].size(), 4u);
  EXPECT_EQ(json["dropped"][0]["why"], "too slow");
}

TEST(MakeDesign, AddsAReferenceThatIsNoneOfItsConfigurations) {
  const Design design =
      Make("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nreference: {batch: 4}\nrepeats: 1\n");
  EXPECT_EQ(design.configurations.size(), 3u);
  EXPECT_EQ(design.configurations[design.reference].factors["batch"], 4);
}

TEST(MakeDesign, WantsDataWhereTheApplicationReadsSome) {
  const auto without = MakeDesign(Parse("study: s\nmodel: m\nfactors: {batch: [1]}\n"));
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("names no data"));
  EXPECT_TRUE(MakeDesign(Parse("study: s\nmodel: m\nfixed: {load: closed}\nfactors: {batch: [1]}\n")));
}

TEST(MakeDesign, SaysWhyNothingIsLeft) {
  const auto none = MakeDesign(
      Parse("study: s\nmodel: m\ndata: d\nfixed: {architecture: distributed, payload: shared-memory}\n"));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("two nodes share no memory"));
}

TEST(MakeDesign, WantsSomethingToPlayOnASecondNode) {
  const std::string hosts = "study: s\nmodel: m\ndata: d\nnetwork: {hosts: {server: user@host}}\n";
  const auto none = MakeDesign(Parse(hosts + "factors: {batch: [1]}\n"));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("network.hosts names a second node"));
  EXPECT_TRUE(MakeDesign(Parse(hosts + "factors: {architecture: [in-process, distributed]}\n")));
}

TEST(PilotTrials, TryTheReferenceAndEachArchitectureOnce) {
  const Design design =
      Make(std::string(kFactorial) + "reference: {architecture: microservice, batch: 32}\n");
  const std::vector<Trial> pilots = PilotTrials(design);
  ASSERT_EQ(pilots.size(), 2u);
  EXPECT_EQ(pilots[0].configuration, design.reference);
  EXPECT_EQ(design.configurations[pilots[0].configuration].factors["architecture"], "microservice");
  EXPECT_EQ(design.configurations[pilots[1].configuration].factors["architecture"], "in-process");
}

TEST(ImagesPerTrial, AreThoseAskedForButFillTheBatches) {
  const Configuration eight{.factors = {{"batch", 8}, {"in_flight", 4}}};
  EXPECT_EQ(ImagesPerTrial({.images = 1500}, eight, std::nullopt), 1500);
  EXPECT_EQ(ImagesPerTrial({.images = 100}, eight, std::nullopt), (30 + 4) * 8);
  EXPECT_EQ(ImagesPerTrial({.images = 100, .batches = 60}, eight, std::nullopt), (60 + 4) * 8);
  EXPECT_EQ(ImagesPerTrial({.seconds = 3}, eight, 1000), std::nullopt);
  EXPECT_EQ(ImagesPerTrial({}, eight, std::nullopt), (30 + 4) * 8);
}

TEST(ImagesPerTrial, CountThePassesOverASetAndItsCopies) {
  Configuration set{.factors = {{"batch", 8}, {"images", 1500}, {"replication", 9}}};
  EXPECT_EQ(ImagesPerTrial({.passes = 1}, set, 100), 13500);
  set.factors.erase("images");
  EXPECT_EQ(ImagesPerTrial({.passes = 2}, set, 1000), 18000);
  EXPECT_EQ(ImagesPerTrial({.passes = 2}, set, std::nullopt), std::nullopt);
  EXPECT_EQ(ImagesPerTrial({.images = 20000, .passes = 2}, set, 1000), 20000);
  set.factors["load"] = "closed";  // no data are gone over
  EXPECT_EQ(ImagesPerTrial({.images = 1500, .passes = 2}, set, 1000), 1500);
}

TEST(TimeNeeded, ComesFromThePilotAndWhatIsDone) {
  const Design design = Make("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nrepeats: 2\n");
  ASSERT_EQ(design.trials.size(), 10u);  // a block: 1, 1, 1, 1 as reference and trial, 8 once
  EXPECT_EQ(TimeNeeded(design, std::vector<std::optional<double>>{2.0, 5.0}), 2 * (4 * 2 + 5));
  EXPECT_EQ(TimeNeeded(design, std::vector<std::optional<double>>{2.0, std::nullopt}), 2 * (4 * 2 + 2));
  EXPECT_EQ(TimeNeeded(design, std::vector<std::optional<double>>{std::nullopt}), std::nullopt);
  const std::vector<std::string> done{design.trials[0].id};
  EXPECT_EQ(TimeNeeded(design, std::vector<std::optional<double>>{2.0, 5.0}, done), 24);
}

TEST(MakeDesign, RefusesAnExceptionThatIsNone) {
  const auto design = MakeDesign(Parse(std::string(kFactorial) + "except:\n  - {batch: 77, why: typo}\n"));
  ASSERT_FALSE(design);
  EXPECT_THAT(design.error().message, HasSubstr("except (why: typo): no combination is that one"));
}

TEST(MakeDesign, RefusesSecondsForTheApplication) {
  const auto design = MakeDesign(Parse(std::string(kFactorial) + "trial: {seconds: 2}\n"));
  ASSERT_FALSE(design);
  EXPECT_THAT(design.error().message, HasSubstr("in images, passes or batches"));
}

}  // namespace
}  // namespace weir::study
