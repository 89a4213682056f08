#include "serve/announcement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::serve {
namespace {

using results::ServeResult;
using ::testing::HasSubstr;
using ::testing::Not;

// A server with two models, of which one is ready.
class FakeServer final : public Server {
 public:
  Ports ports() const override { return ports_; }
  void WaitUntilLoaded(const std::stop_token&) override {}
  Status Ready() override { return ready_; }
  std::vector<oip::IndexEntry> Index() override { return index_; }
  Result<oip::ModelMetadata> Metadata(const std::string& model) override {
    return oip::ModelMetadata{.name = model,
                              .versions = {"1", "3"},
                              .platform = "onnxruntime_onnx",
                              .inputs = {{.name = "x", .dtype = infer::DType::kFp32, .shape = shape_}},
                              .outputs = {{.name = "y", .dtype = infer::DType::kFp32, .shape = {-1, 2}}}};
  }
  std::optional<std::string> WaitUntilLost(const std::stop_token&) override { return std::nullopt; }
  bool Stop() override { return true; }

  Ports ports_{.http = 8000, .grpc = 8001, .metrics = -1};
  Status ready_;
  infer::Shape shape_{-1, 4};
  std::vector<oip::IndexEntry> index_{{.name = "good", .version = "1", .state = "READY"},
                                      {.name = "good", .version = "3", .state = "READY"},
                                      {.name = "bad", .state = "UNAVAILABLE", .reason = "no file"}};
};

TEST(AnnouncementTest, DescribesEachReadyModelOnceAndEveryEntry) {
  FakeServer server;
  const ServeResult result = Describe({}, server);
  EXPECT_TRUE(result.ready);
  ASSERT_EQ(result.models.size(), 1U);
  EXPECT_EQ(result.models[0].name, "good");
  EXPECT_EQ(result.models[0].versions, (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(result.models[0].inputs[0].datatype, "FP32");
  EXPECT_EQ(result.index.size(), 3U);
  EXPECT_EQ(result.http->url, "http://127.0.0.1:8000");
  EXPECT_EQ(result.grpc->port, 8001);
  EXPECT_FALSE(result.metrics.has_value());
}

TEST(AnnouncementTest, IsTheSameAfterJson) {
  FakeServer server;
  server.ready_ = Fail(ErrorCode::kOverloaded, "model \"bad\" is loading");
  const ServeResult result = Describe({.version = "1.0"}, server);
  const auto again = ServeResult::FromJson(result.ToJson());
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(*again, result);
  EXPECT_EQ(again->not_ready, "model \"bad\" is loading");
}

TEST(AnnouncementTest, GivesACommandThatInfersWhereTheInputIsShort) {
  FakeServer server;
  const std::string text = AnnouncementText(TextStyle(), Describe({}, server));
  EXPECT_THAT(text,
              HasSubstr("good                     version 1, 3   onnxruntime_onnx: x FP32 [-1,4] -> y"));
  EXPECT_THAT(text, HasSubstr("bad                      not served: no file"));
  EXPECT_THAT(text, HasSubstr(R"(/v2/models/good/infer -H 'Content-Type: application/json')"));
  EXPECT_THAT(text, HasSubstr(R"("shape":[1,4],"data":[0,0,0,0])"));
  server.shape_ = {-1, 3, 224, 224};
  const std::string other = AnnouncementText(TextStyle(), Describe({}, server));
  EXPECT_THAT(other, Not(HasSubstr("/infer")));
  EXPECT_THAT(other, HasSubstr("curl -s http://127.0.0.1:8000/v2/models/good\n"));
}

TEST(AnnouncementTest, WarnsOfAddressesThatOthersReach) {
  FakeServer server;
  EXPECT_EQ(ExposureWarning(Describe({}, server)), "");
  ServerOptions options;
  options.http.address = "::";
  const ServeResult result = Describe(options, server);
  EXPECT_EQ(result.http->url, "http://[::1]:8000");
  EXPECT_THAT(ExposureWarning(result), HasSubstr("listens on [::]:8000, which is not loopback"));
}

TEST(AnnouncementTest, SaysWhyNoModelIsServed) {
  FakeServer server;
  EXPECT_TRUE(CheckServesAny({}, Describe({}, server)).has_value());
  server.index_.erase(server.index_.begin(), server.index_.begin() + 2);
  EXPECT_THAT(CheckServesAny({}, Describe({}, server)).error().message, HasSubstr("see the reasons above"));
  server.index_.clear();
  const Status none = CheckServesAny({.repositories = {"models"}}, Describe({}, server));
  EXPECT_THAT(none.error().message, HasSubstr("models: no model is in it"));
}

}  // namespace
}  // namespace weir::serve
