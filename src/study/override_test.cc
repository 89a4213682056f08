#include "study/override.h"

#include <gtest/gtest.h>

#include "study/study_file.h"

namespace weir::study {
namespace {

constexpr const char* kText =
    "study: s\nmodel: a  # mine\ndata: d\nfactors:\n  batch: [1, 8]\nfixed: {model_x: 1}\n";

TEST(WithValue, TakesThePlaceOfTheKeyAtTheTop) {
  EXPECT_EQ(WithValue(kText, "model", "/b c.onnx"),
            "study: s\nmodel: \"/b c.onnx\"\ndata: d\nfactors:\n  batch: [1, 8]\nfixed: {model_x: 1}\n");
  EXPECT_EQ(WithValue("model:\n  - a\n  - b\ndata: d\n", "model", "c"), "model: \"c\"\ndata: d\n");
  EXPECT_EQ(WithValue("model:\n- a\n\n- b\ndata: d\n", "model", "c"), "model: \"c\"\ndata: d\n");
  EXPECT_EQ(WithValue("models: x\n  model: y", "model", "c"), "models: x\n  model: y\nmodel: \"c\"\n");
}

TEST(WithValue, AddsAKeyThatIsNotThere) {
  EXPECT_EQ(WithValue("study: s", "data", "p"), "study: s\ndata: \"p\"\n");
  EXPECT_EQ(WithValue("", "data", "p"), "data: \"p\"\n");
}

TEST(WithValue, GivesAStudyFile) {
  const auto study =
      ParseStudy(WithValue("study: s\nmodel: a\nfactors: {batch: [1, 8]}\n", "model", "b\"\\ü"));
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->fixed[0].levels[0], "b\"\\ü");
}

}  // namespace
}  // namespace weir::study
