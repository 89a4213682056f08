#include "onnx/safety.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "onnx/graph.h"
#include "onnx/testing/graph_builder.h"

namespace weir::onnx {
namespace {

namespace fs = std::filesystem;
using testing::GraphBuilder;
using ::testing::HasSubstr;

class Safety : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("safety-" + std::to_string(getpid()));
    fs::create_directories(folder_ / "model/parts");
    folder_ = fs::canonical(folder_);
    Write("model/weights.bin", 64);
    Write("model/parts/weights.bin", 64);
    Write("secret.bin", 64);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, size_t bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << std::string(bytes, 'w');
  }

  // 16 floats, 64 bytes.
  static pb::TensorProto External(const std::string& location, const std::string& offset = "",
                                  const std::string& length = "") {
    pb::TensorProto tensor;
    tensor.set_name("w");
    tensor.set_data_type(pb::TensorProto::FLOAT);
    tensor.add_dims(16);
    tensor.set_data_location(pb::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair("location", location), {"offset", offset}, {"length", length}}) {
      if (value.empty()) continue;
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    return tensor;
  }
  static GraphBuilder Plain() {
    GraphBuilder b;
    b.Input("x", {-1, 16}).Node("Relu", {"x"}, {"y"}).Output("y");
    return b;
  }
  static GraphBuilder With(const pb::TensorProto& tensor) {
    GraphBuilder b = Plain();
    *b.graph().add_initializer() = tensor;
    return b;
  }
  Result<uint64_t> Check(GraphBuilder b) {
    return CheckSafe(b.model(), {(folder_ / "model").string(), roots_});
  }
  std::string Refusal(const GraphBuilder& b) {
    const auto checked = Check(b);
    EXPECT_FALSE(checked.has_value());
    if (checked) return "";
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument) << checked.error().message;
    return checked.error().message;
  }

  fs::path folder_;
  std::vector<std::string> roots_;
};

TEST_F(Safety, TakesExternalDataInTheFolderAndBelow) {
  EXPECT_EQ(Check(With(External("weights.bin"))), 64u);
  EXPECT_EQ(Check(With(External("./parts/weights.bin", "0", "64"))), 64u);
  EXPECT_EQ(Check(Plain()), 0u);
}

TEST_F(Safety, RefusesExternalDataThatLeavesTheFolder) {
  EXPECT_THAT(Refusal(With(External("../secret.bin"))), HasSubstr("leaves the model's folder"));
  EXPECT_THAT(Refusal(With(External("parts/../weights.bin"))), HasSubstr("leaves the model's folder"));
  EXPECT_THAT(Refusal(With(External((folder_ / "secret.bin").string()))), HasSubstr("absolute"));
  EXPECT_THAT(Refusal(With(External(std::string("weights.bin\0", 12)))), HasSubstr("zero byte"));
  EXPECT_THAT(Refusal(With(External("*/_ORT_MEM_ADDR_/*"))), HasSubstr("address in memory"));
}

TEST_F(Safety, RefusesExternalDataBehindLinks) {
  fs::create_symlink(folder_ / "secret.bin", folder_ / "model/link.bin");
  fs::create_symlink("weights.bin", folder_ / "model/inner.bin");
  fs::create_directory_symlink(folder_, folder_ / "model/up");
  for (const char* location : {"link.bin", "up/secret.bin"}) {
    EXPECT_THAT(Refusal(With(External(location))), HasSubstr("--allow-link")) << location;
  }
  EXPECT_TRUE(Check(With(External("inner.bin"))).has_value()) << "it leads to the model's own folder";
  roots_ = {fs::canonical(folder_).string()};
  for (const char* location : {"link.bin", "up/secret.bin"})
    EXPECT_TRUE(Check(With(External(location))).has_value()) << location;
  EXPECT_THAT(Refusal(With(External("../secret.bin"))), HasSubstr("leaves the model's folder"));
  fs::create_symlink("/etc/passwd", folder_ / "model/passwd");
  fs::create_symlink("gone.bin", folder_ / "model/dangling");
  EXPECT_THAT(Refusal(With(External("passwd"))), HasSubstr("--allow-link"));
  EXPECT_THAT(Refusal(With(External("dangling"))), HasSubstr("not there"));
}

// The cache of Hugging Face: the file and its data are links to files of other names.
TEST_F(Safety, FindsExternalDataBesideTheLinkThatTheyBelongTo) {
  fs::create_directories(folder_ / "blobs");
  fs::create_directories(folder_ / "snapshots/onnx");
  std::ofstream(folder_ / "blobs/a", std::ios::binary) << With(External("weights.bin")).Bytes();
  Write("blobs/b", 64);
  fs::create_symlink("../../blobs/a", folder_ / "snapshots/onnx/model.onnx");
  fs::create_symlink("../../blobs/b", folder_ / "snapshots/onnx/weights.bin");
  fs::create_symlink("snapshots/onnx/model.onnx", folder_ / "net.onnx");
  const std::string root = fs::canonical(folder_).string();
  for (const char* name : {"snapshots/onnx/model.onnx", "net.onnx"}) {
    const std::string path = (folder_ / name).string();
    const auto refused = ReadGraph(path);
    ASSERT_FALSE(refused) << name;
    const auto facts = ReadGraph(path, {root});
    ASSERT_TRUE(facts) << facts.error().message;
    EXPECT_EQ(fs::canonical(fs::path(facts->path).parent_path()), root + "/snapshots/onnx") << name;
    EXPECT_EQ(facts->external_bytes, 64u);
  }
}

TEST_F(Safety, RefusesExternalDataThatIsNoWholeFile) {
  ASSERT_EQ(mkfifo((folder_ / "model/pipe").c_str(), 0600), 0);
  EXPECT_THAT(Refusal(With(External("pipe"))), HasSubstr("not a regular file"));
  EXPECT_THAT(Refusal(With(External("parts"))), HasSubstr("not a regular file"));
  EXPECT_THAT(Refusal(With(External("gone.bin"))), HasSubstr("not there"));
  EXPECT_THAT(Refusal(With(External("weights.bin/x"))), HasSubstr("passes through a file"));
  EXPECT_THAT(Refusal(With(External(""))), HasSubstr("without a location"));
}

TEST_F(Safety, RefusesExternalDataThatReachesPastTheFile) {
  EXPECT_THAT(Refusal(With(External("weights.bin", "65"))), HasSubstr("begins after the end"));
  EXPECT_THAT(Refusal(With(External("weights.bin", "-1"))), HasSubstr("begins after the end"));
  EXPECT_THAT(Refusal(With(External("weights.bin", "4", "64"))), HasSubstr("ends after the end"));
  EXPECT_THAT(Refusal(With(External("weights.bin", "1", "18446744073709551615"))),
              HasSubstr("ends after the end"));
  EXPECT_THAT(Refusal(With(External("weights.bin", "4"))), HasSubstr("larger than its external data"));
  pb::TensorProto twice = External("weights.bin");
  *twice.add_external_data() = External("../secret.bin").external_data(0);
  EXPECT_THAT(Refusal(With(twice)), HasSubstr("twice"));
}

TEST_F(Safety, LooksForExternalDataEverywhere) {
  const pb::TensorProto bad = External("../secret.bin");
  std::vector<GraphBuilder> models(5, Plain());
  *models[0].graph().mutable_node(0)->add_attribute() = testing::MakeAttribute("value", bad);
  GraphBuilder body = With(bad);
  *models[1].graph().mutable_node(0)->add_attribute() = testing::MakeAttribute("then_branch", body.graph());
  *models[2].graph().add_sparse_initializer()->mutable_indices() = bad;
  GraphBuilder::AddNode(*models[3].model().add_functions()->add_node(), "Constant", {}, {"c"},
                        {{"value", bad}});
  *models[4].model().add_training_info()->mutable_initialization()->add_initializer() = bad;
  for (const GraphBuilder& model : models)
    EXPECT_THAT(Refusal(model), HasSubstr("leaves the model's folder"));
}

TEST_F(Safety, LooksIntoTheDefaultAttributesOfFunctions) {
  GraphBuilder b = Plain();
  const std::string attribute =
      testing::MakeAttribute("value", External("../secret.bin")).SerializeAsString();
  auto& function = *b.model().add_functions();
  function.GetReflection()->MutableUnknownFields(&function)->AddLengthDelimited(11, attribute);
  EXPECT_THAT(Refusal(b), HasSubstr("leaves the model's folder"));
}

TEST_F(Safety, RefusesOperatorsOfCustomLibraries) {
  GraphBuilder b = Plain();
  b.graph().mutable_node(0)->set_domain("com.example.ops");
  EXPECT_THAT(Refusal(b), HasSubstr("custom"));
  EXPECT_THAT(Refusal(b), HasSubstr("com.example.ops"));
  auto& function = *b.model().add_functions();
  function.set_domain("com.example.ops");
  function.set_name("Relu");
  EXPECT_TRUE(Check(b).has_value()) << "a function that the model brings itself is no library";
}

TEST_F(Safety, TakesTheOperatorsThatTheEnginesHaveBuiltIn) {
  for (const char* domain : {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}) {
    GraphBuilder b = Plain();
    b.graph().mutable_node(0)->set_domain(domain);
    EXPECT_TRUE(Check(b).has_value()) << domain;
  }
  GraphBuilder b = Plain();
  b.graph().mutable_node(0)->set_domain("com.microsoft");
  b.graph().mutable_node(0)->set_op_type("EPContext");
  EXPECT_THAT(Refusal(b), HasSubstr("outside the model"));
}

TEST_F(Safety, RefusesFunctionsThatCallThemselvesOrGrowWithoutEnd) {
  const auto call = [](GraphBuilder& b, const std::string& caller, const std::string& called, int times) {
    auto& function = *b.model().add_functions();
    function.set_domain("f");
    function.set_name(caller);
    for (int i = 0; i < times; ++i) {
      GraphBuilder::AddNode(*function.add_node(), called, {}, {});
      function.mutable_node(i)->set_domain("f");
    }
  };
  GraphBuilder circle = Plain();
  call(circle, "a", "b", 1);
  call(circle, "b", "a", 1);
  EXPECT_THAT(Refusal(circle), HasSubstr("calls itself"));
  GraphBuilder overloads = Plain();
  call(overloads, "a", "a", 1);
  call(overloads, "a", "", 0);
  EXPECT_THAT(Refusal(overloads), HasSubstr("calls itself"));
  GraphBuilder laughs = Plain();
  for (int i = 0; i < 12; ++i) call(laughs, "f" + std::to_string(i), "f" + std::to_string(i + 1), 10);
  call(laughs, "f12", "", 0);
  EXPECT_THAT(Refusal(laughs), HasSubstr("10 million nodes"));
}

TEST_F(Safety, FindsTensorsThatContradictThemselves) {
  pb::TensorProto negative = testing::Integers("w", {1, 2});
  negative.set_dims(0, -2);
  pb::TensorProto cut = testing::Integers("w", {});
  cut.set_dims(0, 2);
  cut.set_raw_data("12345678");
  for (const auto& tensor : {negative, cut}) {
    const auto checked = Check(With(tensor));
    ASSERT_FALSE(checked.has_value());
    EXPECT_EQ(checked.error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(Safety, FindsASparseTensorOfNegativeSize) {
  GraphBuilder b = Plain();
  b.graph().add_sparse_initializer()->add_dims(-2);
  const auto checked = Check(b);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, ErrorCode::kCorrupt);
}

TEST_F(Safety, ResolvesTheDataOfALinkedModelInItsRealFolder) {
  std::ofstream(folder_ / "model/model.onnx", std::ios::binary) << With(External("weights.bin")).Bytes();
  fs::create_symlink(folder_ / "model/model.onnx", folder_ / "link.onnx");
  const auto facts = ReadGraph((folder_ / "link.onnx").string());
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  EXPECT_EQ(facts->path, (folder_ / "model/model.onnx").string());
  EXPECT_EQ(facts->external_bytes, 64u);
}

TEST_F(Safety, NamesAMissingFileAndDoesNotWaitForAPipe) {
  ASSERT_EQ(mkfifo((folder_ / "pipe.onnx").c_str(), 0600), 0);
  EXPECT_EQ(ReadGraph((folder_ / "gone.onnx").string()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadGraph((folder_ / "pipe.onnx").string()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadGraph(folder_.string()).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::onnx
