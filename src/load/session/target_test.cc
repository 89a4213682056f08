#include "load/session/target.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "load/session/null_server.h"
#include "load/session/session_requests.h"
#include "load/testing/fake_target.h"

namespace weir::load {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kConfig = R"(name: "m"
backend: "emulated"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }
parameters { key: "engine" value: { string_value: "emulated:base=0ms" } }
)";

class TargetTest : public ::testing::Test {
 protected:
  TargetTest() : folder_(TemporaryFolder::Make("load-target").value()), model_(folder_.path() + "/m") {
    CHECK(MakeFolders(model_).has_value());
    CHECK(WriteFileWhole(model_ + "/config.pbtxt", kConfig).has_value());
  }

  // The message of the error that opening gives.
  std::string Refusal(const LoadOptions& options) {
    const auto target = OpenTarget(options, clock_, 1);
    if (target) return "opened";
    EXPECT_EQ(target.error().code, ErrorCode::kInvalidArgument);
    return target.error().message;
  }

  const SteadyClock clock_;
  const TemporaryFolder folder_;
  const std::string model_;
};

TEST(UrlOf, JoinsPerfAnalyzersFlags) {
  EXPECT_EQ(UrlOf({.model = "m"}).value(), "http://localhost:8000/m");
  EXPECT_EQ(UrlOf({.model = "m", .protocol = infer::Protocol::kGrpc}).value(), "grpc://localhost:8001/m");
  EXPECT_EQ(UrlOf({.model = "m", .version = "3", .url = "host:9"}).value(), "http://host:9/m/versions/3");
  EXPECT_EQ(UrlOf({.model = "m", .url = "http://host:9", .protocol = infer::Protocol::kGrpc}).value(),
            "grpc://host:9/m");
  EXPECT_FALSE(UrlOf({.model = "m", .url = "ftp://host"}));
  EXPECT_FALSE(UrlOf({}));
}

TEST_F(TargetTest, ModelInThisProcessAnswers) {
  const LoadOptions options{.target = model_, .batch = 2};
  const auto target = OpenTarget(options, clock_, 4);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ((*target)->protocol(), "in-process");
  EXPECT_EQ((*target)->info().name, "m");
  EXPECT_FALSE((*target)->Statistics().has_value());
  const auto requests = RequestsFor(options, **target, {}, clock_);
  ASSERT_TRUE(requests) << requests.error().message;
  ASSERT_FALSE(requests->pool.empty());
  EXPECT_EQ(requests->pool.front().inputs.front().shape, (infer::Shape{2, 4}));
  (*target)->GiveUp();
  EXPECT_THAT((*target)->Title(), HasSubstr("in this process"));
}

TEST_F(TargetTest, RefusesAServersFlagsForAModelInThisProcess) {
  EXPECT_THAT(Refusal({.target = model_, .connections = 3}), HasSubstr("--connections"));
  EXPECT_THAT(Refusal({.target = model_, .headers = {"a: b"}}), HasSubstr("-H"));
  EXPECT_THAT(Refusal({.target = model_, .payload = infer::Payload::kImage}), HasSubstr("--payload image"));
  EXPECT_THAT(Refusal({.target = model_, .calibrate = true}), HasSubstr("--calibrate"));
  EXPECT_THAT(Refusal({.target = model_, .split = SplitSource::kResponse}), HasSubstr("--split"));
  EXPECT_THAT(Refusal({.target = model_, .priority = 1}), HasSubstr("--priority"));
  EXPECT_THAT(Refusal({.target = model_, .shared_memory = infer::SharedMemory::kSystem}),
              HasSubstr("--shared-memory"));
  EXPECT_THAT(Refusal({.target = model_, .model = "other"}), HasSubstr("names the model already"));
}

TEST_F(TargetTest, RefusesAnEnginesFlagsForAServer) {
  EXPECT_THAT(Refusal({.target = "http://127.0.0.1:1/m", .engine = "onnxruntime"}), HasSubstr("--engine"));
  EXPECT_THAT(Refusal({.target = "http://127.0.0.1:1/m", .channels = 2}), HasSubstr("--channels"));
  EXPECT_THAT(Refusal({.target = "grpc://127.0.0.1:1/m", .connections = 2}), HasSubstr("--connections"));
  EXPECT_THAT(Refusal({.target = "http://127.0.0.1:1/m", .version = "2"}), HasSubstr("-x"));
}

TEST_F(TargetTest, RefusesAModelsFlagsForAnEndpoint) {
  EXPECT_THAT(Refusal({.target = "m", .endpoint = "http://127.0.0.1:1/"}), HasSubstr("MODEL"));
  EXPECT_THAT(Refusal({.endpoint = "http://127.0.0.1:1/", .batch = 2}), HasSubstr("--batch-size"));
  EXPECT_THAT(Refusal({.endpoint = "http://127.0.0.1:1/", .check = "x.csv"}), HasSubstr("--check"));
}

TEST_F(TargetTest, EndpointSendsTheFilesAsBodies) {
  const std::string body = folder_.path() + "/body";
  ASSERT_TRUE(WriteFileWhole(body, "{}"));
  const LoadOptions options{.endpoint = "http://127.0.0.1:1/v1/x?y=1", .bodies = {body, body}};
  const auto target = OpenTarget(options, clock_, 1);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ((*target)->Title(), "POST http://127.0.0.1:1/v1/x?y=1");
  auto requests = RequestsFor(options, **target, {}, clock_);
  ASSERT_TRUE(requests);
  ASSERT_THAT(requests->pool, SizeIs(2));
  EXPECT_EQ(requests->pool[0].inputs.at(0).data.text(), "{}");
  ASSERT_TRUE((*target)->Prepare(*requests));
  EXPECT_NE(requests->pool[0].prepared, nullptr);
}

TEST_F(TargetTest, RefusesChecksThatCannotBeMade) {
  FakeTarget target;
  target.model.inputs = {{.name = "IN", .dtype = infer::DType::kFp32, .shape = {4}}};
  const auto refusal = [&](const LoadOptions& options) {
    const auto requests = RequestsFor(options, target, {}, clock_);
    return requests ? "made" : requests.error().message;
  };
  EXPECT_THAT(refusal({.check = kCheckData}), HasSubstr("--check needs answers"));
  EXPECT_THAT(refusal({.check = "answers.csv"}), HasSubstr("name those with --data"));
  EXPECT_THAT(refusal({.data = {"p"}, .check = kCheckData}), HasSubstr("--check wants the answers"));
  EXPECT_THAT(refusal({.data = {"p"}, .payload = infer::Payload::kImage, .check = "model"}),
              HasSubstr("--payload"));
  EXPECT_THAT(refusal({.payload = infer::Payload::kImage}), HasSubstr("--data"));
  EXPECT_THAT(refusal({.data = {"p"}}), HasSubstr("--recipe"));
}

TEST_F(TargetTest, ModelInThisProcessIsTheCheck) {
  FakeTarget target;
  target.model.inputs = {{.name = "IN", .dtype = infer::DType::kFp32, .shape = {-1, 4}}};
  target.model.max_batch = 8;
  std::vector<std::string> notes;
  const auto requests = RequestsFor(
      {.pool = 3, .check = model_}, target, [&](const std::string& line) { notes.push_back(line); }, clock_);
  ASSERT_TRUE(requests) << requests.error().message;
  EXPECT_TRUE(requests->check);
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0], HasSubstr("3 requests are worked out by m in this process"));
}

TEST(NullConfig, HasTheModelsTensorsAndAnswersAtOnce) {
  const auto config =
      NullConfig({.name = "m",
                  .inputs = {{.name = "IN", .dtype = infer::DType::kFp32, .shape = {-1, 3, -1}}},
                  .outputs = {{.name = "OUT", .dtype = infer::DType::kBytes, .shape = {-1, -1}}},
                  .max_batch = 8});
  ASSERT_TRUE(config);
  EXPECT_THAT(*config, HasSubstr("max_batch_size: 8"));
  EXPECT_THAT(*config, HasSubstr("input { name: \"IN\" data_type: TYPE_FP32 dims: [ 3, -1 ] }"));
  EXPECT_THAT(*config, HasSubstr("output { name: \"OUT\" data_type: TYPE_STRING dims: [ 1 ] }"));
  EXPECT_THAT(*config, HasSubstr("emulated:base=0ms"));
}

TEST(NullConfig, RefusesNamesThatWouldLeaveTheFile) {
  EXPECT_FALSE(NullConfig({.name = "a/b"}));
  EXPECT_FALSE(NullConfig({.name = "a\"b"}));
  EXPECT_FALSE(NullConfig({.name = ".."}));
  EXPECT_FALSE(NullConfig({.name = "m", .inputs = {{.name = "IN\" }"}}}));
}

}  // namespace
}  // namespace weir::load
