#include "identity/identities_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::identity {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LatencyOf, LeavesOutWhatTooFewLookUpsSupport) {
  const auto few = LatencyOf({3, 1, 2});
  EXPECT_EQ(few.p50, 2);
  EXPECT_FALSE(few.p99);
  EXPECT_EQ(few.max, 3);
  EXPECT_FALSE(LatencyOf({}).max);
}

TEST(IndexText, NamesTheListsOfSealedFilesAlone) {
  IndexFacts facts;
  facts.dimension = 512;
  facts.rows = 7;
  EXPECT_THAT(IndexText(MakeResult(facts)), HasSubstr("7 of 512 values, 0 in 0 sealed files"));
  EXPECT_THAT(IndexText(MakeResult(facts)), Not(HasSubstr("probed")));
  facts.segments = 1;
  facts.lists = 4;
  facts.probes = 2;
  facts.candidates = 9;
  EXPECT_THAT(IndexText(MakeResult(facts)), HasSubstr("2 of 4 lists probed, 9 rows ranked again"));
}

TEST(EvaluationText, HasTheSharesThatWereMeasured) {
  Evaluation evaluation;
  evaluation.tpir = Share{.value = 0.98, .low = 0.9, .high = 0.99};
  evaluation.search_us = {100, 200, 300};
  const auto result = MakeResult(evaluation, 0.41);
  const std::string text = EvaluationText(TextStyle(), result);
  EXPECT_THAT(text, HasSubstr("evaluation least cosine 0.4100"));
  EXPECT_THAT(text, HasSubstr("identified (TPIR)   98.00 % (90.00 to 99.00)"));
  EXPECT_THAT(text, Not(HasSubstr("FPIR")));
  EXPECT_THAT(text, HasSubstr("p50 200 us;"));
}

}  // namespace
}  // namespace weir::identity
