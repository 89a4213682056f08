#include "identity/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace weir::identity {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr MadeIdentities::Options kMade{.dimension = 16, .intrinsic = 4, .seed = 3};

struct BatchesTest : testing::Test {
  std::string folder = testing::TempDir() + "batches." + std::to_string(::getpid());
  ~BatchesTest() override { std::filesystem::remove_all(folder); }
  std::unique_ptr<Index> Open() {
    EXPECT_TRUE(Index::Create(folder, {.dimension = 16}));
    auto index = Index::Open(folder, {.access = Index::Access::kWrite});
    EXPECT_TRUE(index) << index.error().message;
    return *std::move(index);
  }
};

TEST(OpenBuildSource, WantsOneOriginOrADimension) {
  int dimension = 0;
  EXPECT_THAT(OpenBuildSource({}, dimension).error().message, HasSubstr("--dimension"));
  EXPECT_THAT(
      OpenBuildSource({.vectors = "v.npy", .names = {}, .make = 3, .made = {}}, dimension).error().message,
      HasSubstr("exclude each other"));
  const auto made = OpenBuildSource({.vectors = {}, .names = {}, .make = 3, .made = kMade}, dimension);
  ASSERT_TRUE(made);
  EXPECT_EQ(dimension, 512);
  EXPECT_EQ((*made)->Next(10)->size(), 3U);
  int eight = 8;
  const auto empty = OpenBuildSource({}, eight);
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty, nullptr);
}

TEST_F(BatchesTest, EnrolsAndSearchesInBatches) {
  const auto index = Open();
  const MadeIdentities made(kMade);
  std::vector<uint64_t> told;
  const auto enrolled =
      EnrolAll(*index, *MakeVectorSource(made, 10, 1), 4, [&](uint64_t count) { told.push_back(count); }, {});
  ASSERT_TRUE(enrolled) << enrolled.error().message;
  EXPECT_EQ(*enrolled, 10U);
  EXPECT_THAT(told, ElementsAre(4, 8, 10));
  std::string lines;
  const auto say = [&](const std::string& line) -> Status {
    lines += line;
    return {};
  };
  const auto result = SearchAll(*index, *MakeVectorSource(made, 3, 1),
                                {.search = {.best = 1, .threshold = 0.9}, .batch = 2, .matches = true},
                                SteadyClock(), say, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(*result->queries, 3U);
  ASSERT_EQ(result->matches->size(), 3U);
  EXPECT_EQ(result->matches->at(2).matches.at(0).name, MadeIdentities::Name(2));
  EXPECT_THAT(lines, HasSubstr("query 2: " + MadeIdentities::Name(2) + " 1.000\n"));
  EXPECT_EQ(result->threshold, 0.9);
}

TEST_F(BatchesTest, EndsWhereItIsStoppedOrCannotSpeak) {
  const auto index = Open();
  const MadeIdentities made(kMade);
  std::stop_source stop;
  const auto enrolled = EnrolAll(
      *index, *MakeVectorSource(made, 10, 1), 4, [&](uint64_t) { stop.request_stop(); }, stop.get_token());
  EXPECT_EQ(*enrolled, 4U);
  const auto refuses = [](const std::string&) -> Status {
    return Fail(ErrorCode::kIo, "the pipe is closed");
  };
  const auto result = SearchAll(*index, *MakeVectorSource(made, 3, 1), {}, SteadyClock(), refuses, {});
  EXPECT_THAT(result.error().message, HasSubstr("pipe"));
}

TEST(AddMade, SpreadsMatesAndMakesStrangersThatNobodyIs) {
  const MadeIdentities made(kMade);
  EvaluationQueries queries;
  AddMadeMates(made, 100, 4, 0.6, queries);
  AddMadeStrangers(made, 2, queries);
  ASSERT_EQ(queries.mates.size(), 4U);
  EXPECT_EQ(queries.mates[3].name, MadeIdentities::Name(75));
  double cosine = 0;
  for (size_t i = 0; i < 16; ++i) cosine += double{queries.mates[3].vector[i]} * double{made.Vector(75)[i]};
  EXPECT_NEAR(cosine, 0.6, 1e-5);
  EXPECT_EQ(queries.strangers.size(), 2U);
  AddMadeMates(made, 0, 4, 0.6, queries);
  EXPECT_EQ(queries.mates.size(), 4U) << "an empty index has no mates";
}

TEST_F(BatchesTest, ReadsTheQueriesThatAreAskedFor) {
  const auto index = Open();
  const MadeIdentities made(kMade);
  ASSERT_TRUE(EnrolAll(*index, *MakeVectorSource(made, 10, 1), 10, [](uint64_t) {}, {}));
  EXPECT_THAT(ReadQueries({}, *index).error().message, HasSubstr("--made-mates"));
  const auto queries = ReadQueries({.made_mates = 4, .made_strangers = 3, .made = kMade}, *index);
  ASSERT_TRUE(queries) << queries.error().message;
  EXPECT_EQ(queries->mates.size(), 4U);
  EXPECT_EQ(queries->strangers.size(), 3U);
  EXPECT_EQ(queries->mates.front().vector.size(), 16U);
  EXPECT_FALSE(ReadQueries({.mates = folder + "/none.jsonl"}, *index));
}

}  // namespace
}  // namespace weir::identity
