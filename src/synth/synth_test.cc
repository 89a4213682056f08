#include "synth/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/file.h"
#include "dataset/preparer.h"
#include "dataset/recipe.h"
#include "infer/engine.h"
#include "onnx/graph.h"
#include "synth/pictures.h"

namespace weir::synth {
namespace {

using testing::HasSubstr;

class MakeModelTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "weir-make-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<MadeModel> Make(const std::string& name, bool overwrite = false) {
    return MakeModel({.name = name, .out_dir = folder_, .overwrite = overwrite}, clock_);
  }
  std::string Read(const std::string& path) {
    return ReadTextFile(folder_ + "/" + path).value_or("cannot be read");
  }
  int64_t EntriesOfFolder() {
    return std::ranges::distance(std::filesystem::directory_iterator(folder_),
                                 std::filesystem::directory_iterator());
  }

  const SteadyClock clock_;
  std::string folder_;
};

TEST_F(MakeModelTest, MakesIdentityWithoutAnEngine) {
  const auto made = Make("identity");
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->folder, folder_ + "/identity");
  const auto facts = onnx::ReadGraph(folder_ + "/identity/1/model.onnx");
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  EXPECT_EQ(facts->inputs.at(0).shape, (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(facts->outputs.at(0).shape, (std::vector<int64_t>{-1, -1}));
  EXPECT_TRUE(facts->batchable());
  EXPECT_THAT(Read("identity/config.pbtxt"), HasSubstr("name: \"identity\""));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/identity/recipe.yaml"));
}

TEST_F(MakeModelTest, LeavesAFolderThatIsThereAlone) {
  ASSERT_TRUE(Make("identity").has_value());
  std::filesystem::remove(folder_ + "/identity/config.pbtxt");
  const auto again = Make("identity");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(again.error().message, HasSubstr("identity is there already"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/identity/config.pbtxt"));
}

TEST_F(MakeModelTest, ReplacesAFolderWhenTold) {
  ASSERT_TRUE(Make("identity").has_value());
  ASSERT_TRUE(WriteFileWhole(folder_ + "/identity/old", "").has_value());
  ASSERT_TRUE(Make("identity", true).has_value());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/identity/old"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/identity/config.pbtxt"));
  EXPECT_EQ(EntriesOfFolder(), 1);
}

TEST_F(MakeModelTest, NamesTheNetworksThereAreWhenAskedForAnother) {
  const auto made = Make("vgg16");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(made.error().message, HasSubstr("resnet50"));
  EXPECT_EQ(EntriesOfFolder(), 0);
}

// Needs ONNX Runtime.
class FittedModelTest : public MakeModelTest {
 protected:
  void SetUp() override {
    MakeModelTest::SetUp();
    const auto engine = infer::OpenEngine("onnxruntime", clock_);
    if (!engine) GTEST_SKIP() << engine.error().message;
  }
};

TEST_F(FittedModelTest, StopsWhenAskedAndLeavesNothingBehind) {
  std::stop_source stop;
  stop.request_stop();
  const auto made = MakeModel({.name = "tiny", .out_dir = folder_, .stop = stop.get_token()}, clock_);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(EntriesOfFolder(), 0);
}

// Share of pictures of another seed that the model in `folder` places rightly, and their mean greatest
// probability.
double AccuracyOnFresh(const std::string& folder, int pictures, const Clock& clock) {
  const auto recipe = dataset::ReadRecipe(folder + "/recipe.yaml");
  const auto engine = infer::OpenEngine("onnxruntime", clock);
  const auto session = (*engine)->Load({.path = folder + "/1/model.onnx", .inputs = {}, .outputs = {}}, {});
  const dataset::Size size = *recipe->geometry.OutputSize();
  dataset::Preparer preparer(recipe->geometry, {});
  int right = 0;
  for (int i = 0; i < pictures; ++i) {
    const auto picture = DrawPicture(Seed(4711), i);
    Bytes input = Bytes::Allocate(dataset::InputBytes(*recipe, size));
    dataset::WriteInput(*recipe, **preparer.Prepare(std::as_bytes(std::span(picture->jpeg))),
                        input.mutable_data());
    const auto answer =
        (*session)->Run({{"input", infer::DType::kFp32, {1, 3, size.height, size.width}, input}}, {"logits"});
    const std::span scores(reinterpret_cast<const float*>(answer->outputs[0].data.data()), 1000);
    right += std::ranges::max_element(scores) - scores.begin() == picture->label;
  }
  return static_cast<double>(right) / pictures;
}

TEST_F(FittedModelTest, TinyRecognisesFreshPictures) {
  int64_t told = 0;
  const auto made = MakeModel({.name = "tiny",
                               .out_dir = folder_,
                               .pictures_per_class = 10,
                               .progress = [&](int64_t done, int64_t) { told = done; }},
                              clock_);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(told, made->pictures);
  EXPECT_EQ(EntriesOfFolder(), 1);
  EXPECT_THAT(Read("tiny/labels.txt"), testing::StartsWith(ClassName(0) + "\n"));
  EXPECT_THAT(Read("tiny/labels.txt"), testing::EndsWith("unused 999\n"));
  EXPECT_GE(AccuracyOnFresh(made->folder, 192, clock_), 0.9);
  EXPECT_GE(made->expected_accuracy, 0.9);
}

}  // namespace
}  // namespace weir::synth
