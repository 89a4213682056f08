#include "run/answers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/file.h"

namespace weir::run {
namespace {

infer::Tensor Scores(std::vector<float> values, infer::Shape shape) {
  infer::Tensor tensor{.name = "scores", .dtype = infer::DType::kFp32, .shape = std::move(shape)};
  tensor.data = Bytes::Copy(std::as_bytes(std::span(values)));
  return tensor;
}

std::vector<int> Classes(const std::vector<Answer>& answers) {
  std::vector<int> classes;
  for (const Answer& answer : answers) classes.push_back(answer.class_index);
  return classes;
}

TEST(RankAnswers, BestFirstAndEqualScoresByTheLowerIndex) {
  const auto tensor = Scores({1, 3, 3, 2, 0, 3}, {2, 3});
  EXPECT_EQ(Classes(*RankAnswers(tensor, 2, 0, {}, 5)), (std::vector{1, 2, 0}));
  EXPECT_EQ(Classes(*RankAnswers(tensor, 2, 1, {}, 2)), (std::vector{2, 0}));
}

TEST(RankAnswers, TheBackgroundIsNeverAnAnswer) {
  const auto answers = RankAnswers(Scores({9, 1, 2}, {1, 3}), 1, 0, {.first_class = 1}, 5);
  EXPECT_EQ(Classes(*answers), (std::vector{1, 0}));
}

TEST(RankAnswers, SoftmaxGivesProbabilitiesOverAllOutputs) {
  const auto answers = *RankAnswers(Scores({1000, 1000, 1000, 1000}, {1, 4}), 1, 0, {.softmax = true}, 4);
  for (const Answer& answer : answers) EXPECT_DOUBLE_EQ(answer.score, 0.25);
  const auto two = *RankAnswers(Scores({0, std::log(3.0f)}, {1, 2}), 1, 0, {.softmax = true}, 2);
  EXPECT_NEAR(two[0].score, 0.75, 1e-6);
}

TEST(RankAnswers, ScoresThatAreNotNumbersAreNoAnswer) {
  EXPECT_EQ(RankAnswers(Scores({std::nanf(""), -5, 1}, {1, 3}), 1, 0, {}, 3).error().code,
            ErrorCode::kCorrupt);
}

TEST(RankAnswers, RefusesWhatIsNoBatchOfScores) {
  EXPECT_FALSE(RankAnswers(Scores({1, 2}, {1, 2}), 2, 0, {}, 1));
  EXPECT_FALSE(RankAnswers(Scores({1, 2, 3, 4}, {4, 1}), 2, 0, {}, 1));
  EXPECT_FALSE(RankAnswers(Scores({1, 2}, {2, 2}), 2, 1, {}, 1));  // too few bytes for its shape
  EXPECT_FALSE(RankAnswers(Scores({1}, {1, 1}), 1, 0, {.first_class = 1}, 1));
  infer::Tensor whole = Scores({1}, {1, 1});
  whole.dtype = infer::DType::kInt32;
  EXPECT_EQ(RankAnswers(whole, 1, 0, {}, 1).error().code, ErrorCode::kUnsupported);
}

TEST(CsvField, QuotesOnlyWhatMustBe) {
  EXPECT_EQ(CsvField("plain 写真"), "plain 写真");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("a\"b\nc"), "\"a\"\"b\nc\"");
}

TEST(AnswerWriter, TheFileAppearsWholeOnFinishAndNotBefore) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("weir_answers_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "answers.csv";
  {
    auto writer = *AnswerWriter::Create(path);
    writer->Write("a,b.jpg", {{1, 0.5}, {0, 0.25}}, {"zero", "one, uno"});
    writer->WriteReject("c.jpg", {image::RejectReason::kDamaged, "cut"});
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE(writer->Finish());
  }
  EXPECT_EQ(*ReadTextFile(path),
            "file,status,rank,class,label,score,reason\n"
            "\"a,b.jpg\",ok,1,1,\"one, uno\",0.5,\n"
            "\"a,b.jpg\",ok,2,0,zero,0.25,\n"
            "c.jpg,rejected,,,,,damaged: cut\n");
  {
    auto dropped = *AnswerWriter::Create(folder / "never.csv");
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weir::run
