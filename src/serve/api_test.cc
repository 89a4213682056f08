#include "serve/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "infer/testing/answers.h"
#include "serve/testing/fake_models.h"

namespace weir::serve {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

// A server of the models "a" and "b", of which "a" is loaded.
class ServerApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(::testing::TempDir()) / ("weir_api_" + std::to_string(::getpid()));
    fs::remove_all(base_);
    for (const char* model : {"a", "b"}) {
      fs::create_directories(base_ / model / "1");
      std::ofstream(base_ / model / "1" / "model.onnx") << "x";
    }
    const std::vector<std::string> folders = {base_.string()};
    repository_ = *Repository::Create(
        *Catalogue::Open(folders), {.control = Repository::Control::kExplicit, .load = {"a"}},
        std::make_unique<testing::FakeLoader>(clock_, metrics_), clock_, [](LogLevel, const std::string&) {});
    ASSERT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  }
  void TearDown() override {
    repository_.reset();
    fs::remove_all(base_);
  }

  ServerApi Api(oip::Compat compat, bool explicit_control = true) {
    return ServerApi({.version = "9.9.9", .explicit_control = explicit_control, .compat = compat},
                     {.repository = *repository_,
                      .path = path_,
                      .regions = &regions_,
                      .metrics = metrics_,
                      .failures = failures_},
                     clock_);
  }
  static Status Wait(ServerApi& api, void (ServerApi::*act)(const std::string&, oip::Api::Done),
                     const std::string& model) {
    std::promise<Status> done;
    (api.*act)(model, [&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
  static Status Load(ServerApi& api, const std::string& model) {
    std::promise<Status> done;
    api.Load(model, "", [&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  const SteadyClock clock_;
  Metrics metrics_;
  FailureLog failures_{clock_, [](LogLevel, const std::string&) {}};
  SharedMemoryRegistry regions_;
  InferencePath path_{{.decode_threads = 1}, &regions_, clock_, failures_};
  fs::path base_;
  std::unique_ptr<Repository> repository_;
};

TEST_F(ServerApiTest, IsItselfUnlessItIsAskedToBeTriton) {
  EXPECT_EQ(Api(oip::Compat::kNone).Server().name, "weir");
  EXPECT_EQ(Api(oip::Compat::kNone).Server().version, "9.9.9");
  const oip::ServerMetadata triton = Api(oip::Compat::kTriton).Server();
  EXPECT_EQ(triton.name, "triton");
  EXPECT_THAT(triton.version, ::testing::MatchesRegex("2[.][0-9]+[.][0-9]+"));
  EXPECT_THAT(triton.extensions, Contains("model_repository(unload_dependents)"));
  EXPECT_THAT(triton.extensions, Contains("classification"));
}

TEST_F(ServerApiTest, NamesModelsItDoesNotHaveInTheWordsAskedFor) {
  ServerApi own = Api(oip::Compat::kNone), triton = Api(oip::Compat::kTriton);
  EXPECT_THAT(own.Metadata("none", "").error().message, HasSubstr("not in the model repository"));
  EXPECT_EQ(triton.Metadata("none", "").error(),
            (Error{ErrorCode::kNotFound, "Request for unknown model: 'none' is not found"}));
  EXPECT_EQ(triton.Config("none", "").error().message, "Request for unknown model: 'none' is not found");
  EXPECT_EQ(triton.Statistics("none", "").error().message, "Request for unknown model: 'none' is not found");
  EXPECT_EQ(triton.ModelReady("none", "").error().message, "Request for unknown model: 'none' is not found");
  EXPECT_EQ(triton.Metadata("a", "2").error().message,
            "Request for unknown model: 'a' version 2 is not found");
  EXPECT_EQ(triton.Metadata("a", "x").error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(triton.Metadata("a", ""));
  EXPECT_TRUE(triton.Metadata("a", "1"));

  infer::testing::Answers answers;
  oip::InferRequest request;
  request.request.model = "none";
  triton.Infer(std::move(request), answers.MakeCall("").completion);
  EXPECT_EQ(answers.Wait(1)[0].result.error().message, "Request for unknown model: 'none' is not found");
}

TEST_F(ServerApiTest, NamesALoadThatFailsInTheWordsAskedFor) {
  ServerApi own = Api(oip::Compat::kNone), triton = Api(oip::Compat::kTriton);
  EXPECT_EQ(Load(own, "none").error().code, ErrorCode::kNotFound);
  const Error error = Load(triton, "none").error();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_THAT(error.message, HasSubstr("failed to load 'none', failed to poll from model repository ("));
  EXPECT_TRUE(Load(triton, "b"));
  EXPECT_TRUE(Wait(triton, &ServerApi::Unload, "b"));
  EXPECT_THAT(triton.Metadata("b", "").error().message,
              HasSubstr("Request for unknown model: 'b' has no available versions ("));
  ServerApi fixed = Api(oip::Compat::kTriton, false);
  EXPECT_EQ(Load(fixed, "b").error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(Wait(fixed, &ServerApi::Unload, "a").error().message, HasSubstr("is not allowed"));
}

TEST_F(ServerApiTest, AnswersForMemoryOfAGpuWithoutOne) {
  SharedMemoryRegistry regions;
  for (SharedMemoryRegistry* const one : {static_cast<SharedMemoryRegistry*>(nullptr), &regions}) {
    for (const oip::Compat compat : {oip::Compat::kNone, oip::Compat::kTriton}) {
      ServerApi api({.compat = compat},
                    {.repository = *repository_,
                     .path = path_,
                     .regions = one,
                     .metrics = metrics_,
                     .failures = failures_},
                    clock_);
      EXPECT_TRUE(api.CudaRegions("")->empty());
      EXPECT_EQ(api.CudaRegions("r").error().code, ErrorCode::kNotFound);
      EXPECT_TRUE(api.UnregisterCudaRegion(""));
      EXPECT_TRUE(api.UnregisterCudaRegion("r"));
      const Status refused =
          api.RegisterCudaRegion({.name = "r", .handle = std::string(64, 'a'), .byte_size = 8});
      const std::string words = compat == oip::Compat::kTriton ? "region: 'r', GPUs not supported"
                                : one == nullptr               ? "--allow-client-shm"
                                                               : "no GPU memory";
      EXPECT_THAT(refused.error().message, HasSubstr(words));
    }
  }
}

TEST_F(ServerApiTest, ForgetsRegionsItDoesNotHaveAsTritonDoes) {
  ServerApi own = Api(oip::Compat::kNone), triton = Api(oip::Compat::kTriton);
  EXPECT_EQ(own.UnregisterRegion("r").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(triton.UnregisterRegion("r"));
  EXPECT_TRUE(triton.UnregisterRegion(""));
  EXPECT_EQ(triton.Regions("r").error().message, "Unable to find system shared memory region: 'r'");
}

}  // namespace
}  // namespace weir::serve
