#include "load/inputs/picture_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/set.h"
#include "dataset/set_writer.h"
#include "image/encode.h"
#include "load/inputs/requests.h"

namespace weir::load {
namespace {

namespace fs = std::filesystem;

using infer::DType;
using infer::ModelInfo;
using infer::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 8x6 pixels, as [3,6,8] floats of half the level.
dataset::Recipe SmallRecipe() {
  dataset::Recipe recipe;
  recipe.geometry.resize = dataset::Size{8, 6};
  recipe.scale = 0.5;
  return recipe;
}

ModelInfo Model(DType dtype, Shape shape, int max_batch = 8) {
  return {.name = "m",
          .inputs = {{.name = "IN", .dtype = dtype, .shape = std::move(shape)}},
          .max_batch = max_batch};
}
ModelInfo TensorModel(int max_batch = 8) { return Model(DType::kFp32, {-1, 3, 6, 8}, max_batch); }
ModelInfo PixelsModel() { return Model(DType::kUint8, {-1, 6, 8, 3}); }
ModelInfo ImageModel() { return Model(DType::kBytes, {-1}); }

class PictureRequestsTest : public ::testing::Test {
 protected:
  PictureRequestsTest() {
    folder_ = ::testing::TempDir() + "picture_requests_" + std::to_string(::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~PictureRequestsTest() override { fs::remove_all(folder_); }

  // `count` pictures of one level each: 10, 20, ...
  void WritePictures(int count) {
    for (int i = 1; i <= count; ++i) {
      image::Pixels pixels{.width = 8, .height = 6, .channels = 3};
      pixels.data.assign(8 * 6 * 3, static_cast<uint8_t>(10 * i));
      files_.push_back(*image::EncodePng(pixels));
      Write("picture" + std::to_string(i) + ".png", files_.back());
    }
  }
  void Write(const std::string& name, std::string_view contents) {
    ASSERT_TRUE(WriteFileWhole(folder_ + "/" + name, contents));
  }
  PictureRequests Make(const ModelInfo& model, const PictureOptions& options) {
    auto made = MakePictureRequests(model, "3", SmallRecipe(), {folder_}, options);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : PictureRequests{};
  }
  std::string Refusal(const ModelInfo& model, const PictureOptions& options,
                      const dataset::Recipe& recipe = SmallRecipe()) {
    const auto made = MakePictureRequests(model, "", recipe, {folder_}, options);
    if (made) return "accepted";
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    return made.error().message;
  }

  std::string folder_;
  std::vector<std::string> files_;
};

// The level of each picture of a request whose pictures have one level each.
std::vector<int> Levels(const infer::Request& request) {
  const infer::Tensor& tensor = request.inputs.at(0);
  const bool floats = tensor.dtype == DType::kFp32;
  const size_t item = 8 * 6 * 3 * (floats ? sizeof(float) : 1);
  std::vector<int> levels;
  for (size_t at = 0; at < tensor.data.size(); at += item) {
    float value = 0;
    std::memcpy(&value, tensor.data.data() + at, sizeof value);
    levels.push_back(floats ? static_cast<int>(2 * value) : static_cast<int>(tensor.data.data()[at]));
  }
  return levels;
}

TEST_F(PictureRequestsTest, TensorsAreAsTheRecipeMakesThem) {
  WritePictures(2);
  const PictureRequests made = Make(TensorModel(), {.outputs = {"OUT"}});
  ASSERT_EQ(made.requests.size(), 2u);
  EXPECT_EQ(made.requests[0].model, "m");
  EXPECT_EQ(made.requests[0].version, "3");
  EXPECT_THAT(made.requests[0].outputs, ElementsAre("OUT"));
  const infer::Tensor& tensor = made.requests[0].inputs.at(0);
  EXPECT_EQ(tensor.name, "IN");
  EXPECT_EQ(tensor.dtype, DType::kFp32);
  EXPECT_EQ(tensor.shape, (Shape{1, 3, 6, 8}));
  EXPECT_EQ(tensor.data.size(), 3u * 6 * 8 * 4);
  EXPECT_THAT(Levels(made.requests[0]), ElementsAre(10));
  EXPECT_THAT(Levels(made.requests[1]), ElementsAre(20));
}

TEST_F(PictureRequestsTest, PixelsAreRawWhateverTheRecipesOtherHalfSays) {
  WritePictures(2);
  const PictureRequests made = Make(PixelsModel(), {.payload = Payload::kPixels, .batch = 2});
  ASSERT_EQ(made.requests.size(), 1u);
  EXPECT_EQ(made.requests[0].inputs[0].dtype, DType::kUint8);
  EXPECT_EQ(made.requests[0].inputs[0].shape, (Shape{2, 6, 8, 3}));
  EXPECT_THAT(Levels(made.requests[0]), ElementsAre(10, 20));
}

TEST_F(PictureRequestsTest, ImagesAreTheFilesThemselves) {
  WritePictures(2);
  const PictureRequests made = Make(ImageModel(), {.payload = Payload::kImage, .batch = 2});
  ASSERT_EQ(made.requests.size(), 1u);
  const infer::Tensor& tensor = made.requests[0].inputs[0];
  EXPECT_EQ(tensor.shape, (Shape{2}));
  std::string wanted;
  for (const std::string& file : files_) wanted += std::string(ToElement(file).text());
  EXPECT_EQ(tensor.data.text(), wanted);
}

TEST_F(PictureRequestsTest, BatchesGoOnWithTheFirstPictureBehindTheLast) {
  WritePictures(3);
  const PictureRequests made = Make(TensorModel(), {.batch = 2});
  ASSERT_EQ(made.requests.size(), 3u);
  EXPECT_THAT(Levels(made.requests[1]), ElementsAre(30, 10));
  EXPECT_EQ(std::ssize(made.names), 3);
  EXPECT_EQ(made.left_out, 0);
  EXPECT_THAT(Levels(Make(TensorModel(), {.batch = 4}).requests[0]), ElementsAre(10, 20, 30, 10));
}

TEST_F(PictureRequestsTest, AFullPoolLeavesTheOthersOut) {
  WritePictures(5);
  const PictureRequests made = Make(TensorModel(), {.batch = 2, .pool_limit = 2});
  ASSERT_EQ(made.requests.size(), 2u);
  EXPECT_THAT(Levels(made.requests[1]), ElementsAre(30, 40));
  EXPECT_EQ(std::ssize(made.names), 4);
  EXPECT_EQ(made.left_out, 1);
}

TEST_F(PictureRequestsTest, RejectedPicturesAreSkippedAndCounted) {
  WritePictures(2);
  Write("picture0.png", "no picture");
  Write("empty.png", "");
  const PictureRequests made = Make(TensorModel(), {.batch = 2});
  EXPECT_THAT(Levels(made.requests.at(0)), ElementsAre(10, 20));
  EXPECT_EQ(std::ssize(made.names), 2);
  EXPECT_EQ(made.rejected, 2);
  EXPECT_EQ(Make(ImageModel(), {.payload = Payload::kImage}).rejected, 1);  // the server decodes the other
}

TEST_F(PictureRequestsTest, NoneUsableIsRefused) {
  EXPECT_THAT(Refusal(TensorModel(), {}), HasSubstr("none of 0 pictures"));
  Write("a.png", "no picture");
  EXPECT_THAT(Refusal(TensorModel(), {}), HasSubstr("1 of them are rejected"));
}

TEST_F(PictureRequestsTest, AFixedFirstDimensionIsTheBatch) {
  WritePictures(3);
  const ModelInfo model = Model(DType::kFp32, {3, 3, 6, 8}, 0);
  EXPECT_THAT(Levels(Make(model, {}).requests.at(0)), ElementsAre(10, 20, 30));
  EXPECT_EQ(Refusal(model, {.batch = 3}), "accepted");
  EXPECT_THAT(Refusal(model, {.batch = 2}), HasSubstr("takes 3 pictures at a time"));
  EXPECT_EQ(Make(TensorModel(0), {.batch = 2}).requests.at(0).inputs[0].shape, (Shape{2, 3, 6, 8}));
}

TEST_F(PictureRequestsTest, WhatDoesNotFitTheModelIsRefused) {
  WritePictures(1);
  EXPECT_THAT(Refusal(TensorModel(), {.batch = 9}), HasSubstr("up to 8"));
  EXPECT_THAT(Refusal(TensorModel(), {.batch = 0}), HasSubstr("1 or more"));
  EXPECT_THAT(Refusal(TensorModel(), {.pool_limit = 0}), HasSubstr("pool"));
  EXPECT_THAT(Refusal(TensorModel(), {.payload = Payload::kPixels}), HasSubstr("UINT8 [-1,6,8,3]"));
  EXPECT_THAT(Refusal(TensorModel(), {.payload = Payload::kImage}), HasSubstr("BYTES [-1]"));
  EXPECT_THAT(Refusal(Model(DType::kFp32, {-1, 3, 8, 6}), {}), HasSubstr("takes FP32 [-1,3,8,6]"));
  EXPECT_THAT(Refusal(Model(DType::kFp32, {}), {}), HasSubstr("takes FP32 []"));
  EXPECT_THAT(Refusal(ModelInfo{.name = "m"}, {}), HasSubstr("fill one input"));
  dataset::Recipe other = SmallRecipe();
  other.input = "OTHER";
  EXPECT_THAT(Refusal(TensorModel(), {}, other), HasSubstr("\"OTHER\""));
  dataset::Recipe sizeless;
  EXPECT_THAT(Refusal(TensorModel(), {}, sizeless), HasSubstr("add a crop"));
}

TEST_F(PictureRequestsTest, ABatchOfMoreThanTheWholePoolMayHoldIsRefused) {
  dataset::Recipe large;
  large.geometry.resize = dataset::Size{8192, 8192};
  EXPECT_THAT(Refusal(Model(DType::kFp32, {-1, 3, -1, -1}), {}, large), HasSubstr("512 MiB"));
}

TEST_F(PictureRequestsTest, SetsOfTheRecipesGeometryAreNotPreparedAgain) {
  WritePictures(2);
  const auto write = [&](const std::string& name, dataset::SetFacts facts, std::string_view bytes) {
    auto writer = dataset::SetWriter::Create(folder_ + "/" + name, std::move(facts));
    ASSERT_TRUE(writer);
    const auto added = writer->Add(
        {.source = "p", .label = {}, .bytes = std::as_bytes(std::span(bytes)), .extension = "png"});
    ASSERT_TRUE(added) << added.error().message;
    ASSERT_TRUE(writer->Finish());
  };
  const dataset::Geometry geometry = SmallRecipe().geometry;
  const dataset::Size size{8, 6};
  write("raw", {.format = dataset::SetFormat::kRaw, .geometry = geometry, .size = size},
        std::string(8 * 6 * 3, 30));
  write("files", {.geometry = geometry, .size = size}, files_[1]);
  write("other", {.geometry = dataset::Geometry{.resize = dataset::Size{6, 6}}, .size = dataset::Size{6, 6}},
        files_[1]);
  write("as_they_came", {}, files_[0]);
  const auto make = [&](const std::string& name, const ModelInfo& model, Payload payload) {
    return MakePictureRequests(model, "", SmallRecipe(), {folder_ + "/" + name}, {.payload = payload});
  };
  for (const auto& [name, level] :
       {std::pair("raw", 30), std::pair("files", 20), std::pair("as_they_came", 10)}) {
    EXPECT_THAT(Levels(make(name, TensorModel(), Payload::kTensor)->requests.at(0)), ElementsAre(level));
    EXPECT_THAT(Levels(make(name, PixelsModel(), Payload::kPixels)->requests.at(0)), ElementsAre(level));
  }
  EXPECT_TRUE(make("as_they_came", ImageModel(), Payload::kImage));
  const auto refused = [&](const std::string& name, const ModelInfo& model, Payload payload) {
    const auto made = make(name, model, payload);
    return made ? "accepted" : made.error().message;
  };
  EXPECT_THAT(refused("other", TensorModel(), Payload::kTensor), HasSubstr("another geometry"));
  EXPECT_THAT(refused("raw", ImageModel(), Payload::kImage), HasSubstr("prepared already"));
  EXPECT_THAT(refused("files", ImageModel(), Payload::kImage), HasSubstr("prepared already"));
}

TEST_F(PictureRequestsTest, PathsThatAreNotThereAreNotFound) {
  const auto made = MakePictureRequests(TensorModel(), "", SmallRecipe(), {folder_ + "/none"}, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir::load
