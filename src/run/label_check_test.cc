#include "run/label_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/set_writer.h"

namespace weir::run {
namespace {

using testing::HasSubstr;

TEST(IsSameClass, SeesThroughHowANameIsWritten) {
  EXPECT_TRUE(IsSameClass("tench", "tench"));
  EXPECT_TRUE(IsSameClass("great_white_shark", "Great White Shark"));
  EXPECT_TRUE(IsSameClass("Tinca tinca", "tench, Tinca tinca"));
  EXPECT_TRUE(IsSameClass("n01440764", "n01440764 tench, Tinca tinca"));
  EXPECT_TRUE(IsSameClass("n01440764 tench", "n01440764"));
  EXPECT_FALSE(IsSameClass("tench", "goldfish"));
  EXPECT_FALSE(IsSameClass("cat", "catamaran")) << "a word, not its beginning";
  EXPECT_FALSE(IsSameClass("n01", "n01440764 tench"));
  EXPECT_FALSE(IsSameClass(", ,", "tench"));
}

class CheckLabelsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        testing::TempDir() + "check_labels_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A set with these classes, and a picture for each label.
  dataset::Listing ListSet(const std::vector<std::string>& classes,
                           const std::vector<std::optional<int>>& labels) const {
    dataset::SetFacts facts;
    facts.classes = classes;
    dataset::SetWriter writer = dataset::SetWriter::Create(folder_, facts).value();
    for (const auto& label : labels) {
      const std::string bytes = "\x89PNG\r\n\x1A\n" + std::to_string(writer.images());
      const std::string source = "picture" + std::to_string(writer.images());
      EXPECT_TRUE(writer.Add({.source = source,
                              .label = label,
                              .bytes = std::as_bytes(std::span(bytes)),
                              .extension = "png",
                              .hash = {},
                              .sha256 = {},
                              .source_hash = {},
                              .source_sha256 = {}}));
    }
    EXPECT_TRUE(writer.Finish());
    return dataset::ListInputs({folder_}).value();
  }

  static std::string Refusal(const dataset::Listing& listing, const Target& target) {
    const Status checked = CheckLabels(listing, target);
    return checked ? "" : checked.error().message;
  }

  std::string folder_;
};

TEST_F(CheckLabelsTest, LetsLabelsOfTheModelPass) {
  const dataset::Listing listing = ListSet({"cat", "dog"}, {0, 1, 1, std::nullopt});
  EXPECT_EQ(Refusal(listing, {.labels = {"cat", "dog", "bird"}, .classes = 3}), "");
  EXPECT_EQ(Refusal(listing, {.labels = {}, .classes = 2}), "") << "a model without names";
  EXPECT_EQ(Refusal(listing, {.labels = {}, .classes = {}}), "") << "nor a known number";
  EXPECT_EQ(Refusal({}, {.labels = {"cat"}, .classes = 1}), "");
}

TEST_F(CheckLabelsTest, RefusesALabelBeyondTheClasses) {
  EXPECT_THAT(Refusal(ListSet({}, {0, 7}), {.labels = {}, .classes = 7}),
              HasSubstr("has the label 7, and the model has 7 classes"));
}

TEST_F(CheckLabelsTest, RefusesAClassThatTheModelCallsOtherwise) {
  const dataset::Listing listing = ListSet({"cat", "dog"}, {1});
  EXPECT_THAT(
      Refusal(listing, {.labels = {"tench", "goldfish"}, .classes = 2}),
      HasSubstr("class 1 is \"dog\" in the set " + folder_ + ", and \"goldfish\" by the model's labels"));
  EXPECT_THAT(Refusal(listing, {.labels = {"dog", "cat"}, .classes = 2}), HasSubstr("class 1"))
      << "the names are there, and stand for other outputs";
  EXPECT_EQ(Refusal(listing, {.labels = {"tench", "dog"}, .classes = 2}), "") << "no picture is a cat";
}

}  // namespace
}  // namespace weir::run
