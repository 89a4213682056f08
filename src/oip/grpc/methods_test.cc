#include "oip/grpc/methods.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "oip/health.pb.h"
#include "oip/oip.pb.h"
#include "oip/testing/fake_api.h"

namespace weir::oip {
namespace {

class GrpcMethodsTest : public testing::Test {
 protected:
  Result<std::string> CallBytes(std::string_view name, const std::string& message) {
    Result<std::string> answer = Fail(ErrorCode::kInternal, "no such method");
    for (const GrpcMethod& method : GrpcMethods()) {
      if (!std::string_view(method.name).ends_with("/" + std::string(name))) continue;
      method.serve({.api = api_, .allow_regions = allow_regions_, .compat = compat_}, message,
                   [&](Result<std::string> given) { answer = std::move(given); });
    }
    return answer;
  }
  template <typename Response, typename Request>
  Response Call(std::string_view name, const Request& request) {
    const Result<std::string> bytes = CallBytes(name, request.SerializeAsString());
    Response response;
    EXPECT_TRUE(bytes && response.ParseFromString(*bytes)) << (bytes ? "" : bytes.error().message);
    return response;
  }
  template <typename Request>
  ErrorCode Refused(std::string_view name, const Request& request) {
    const Result<std::string> bytes = CallBytes(name, request.SerializeAsString());
    return bytes ? ErrorCode::kInternal : bytes.error().code;
  }

  FakeApi api_;
  bool allow_regions_ = true;
  Compat compat_ = Compat::kNone;
};

TEST_F(GrpcMethodsTest, SayWhetherServerAndModelsAreReady) {
  EXPECT_TRUE(Call<inference::ServerLiveResponse>("ServerLive", inference::ServerLiveRequest()).live());
  EXPECT_TRUE(Call<inference::ServerReadyResponse>("ServerReady", inference::ServerReadyRequest()).ready());
  inference::ModelReadyRequest model;
  model.set_name("identity");
  EXPECT_TRUE(Call<inference::ModelReadyResponse>("ModelReady", model).ready());
  model.set_name("none");
  EXPECT_FALSE(Call<inference::ModelReadyResponse>("ModelReady", model).ready());
  api_.ready = Fail(ErrorCode::kOverloaded, "draining");
  EXPECT_FALSE(Call<inference::ServerReadyResponse>("ServerReady", inference::ServerReadyRequest()).ready());
}

TEST_F(GrpcMethodsTest, TellOfServerAndModels) {
  const auto server =
      Call<inference::ServerMetadataResponse>("ServerMetadata", inference::ServerMetadataRequest());
  EXPECT_EQ(server.name(), "weir");
  EXPECT_EQ(server.extensions_size(), 2);
  inference::ModelMetadataRequest model;
  model.set_name("identity");
  const auto metadata = Call<inference::ModelMetadataResponse>("ModelMetadata", model);
  EXPECT_EQ(metadata.versions(0), "1");
  EXPECT_EQ(metadata.platform(), "emulated");
  EXPECT_EQ(metadata.inputs(0).datatype(), "FP32");
  EXPECT_EQ(metadata.outputs(0).shape(0), -1);
  model.set_version("9");
  EXPECT_EQ(Refused("ModelMetadata", model), ErrorCode::kNotFound);
}

TEST_F(GrpcMethodsTest, GiveTheConfigurationAsTheMessageItIs) {
  inference::ModelConfigRequest request;
  request.set_name("identity");
  EXPECT_EQ(Call<inference::ModelConfigResponse>("ModelConfig", request).config(), "\x0a\x08identity");
}

TEST_F(GrpcMethodsTest, GiveTheStatistics) {
  const auto all =
      Call<inference::ModelStatisticsResponse>("ModelStatistics", inference::ModelStatisticsRequest());
  ASSERT_EQ(all.model_stats_size(), 1);
  EXPECT_EQ(all.model_stats(0).inference_count(), 3u);
  EXPECT_EQ(all.model_stats(0).inference_stats().success().ns(), 7000u);
  EXPECT_EQ(all.model_stats(0).batch_stats(0).compute_infer().count(), 2u);
}

TEST_F(GrpcMethodsTest, ListLoadAndUnload) {
  inference::RepositoryIndexRequest index;
  EXPECT_EQ(Call<inference::RepositoryIndexResponse>("RepositoryIndex", index).models(1).reason(), "no file");
  index.set_ready(true);
  EXPECT_EQ(Call<inference::RepositoryIndexResponse>("RepositoryIndex", index).models_size(), 1);
  index.set_repository_name("other");
  EXPECT_EQ(Refused("RepositoryIndex", index), ErrorCode::kUnsupported);

  inference::RepositoryModelLoadRequest load;
  load.set_model_name("m");
  (*load.mutable_parameters())["config"].set_string_param("{}");
  Call<inference::RepositoryModelLoadResponse>("RepositoryModelLoad", load);
  inference::RepositoryModelUnloadRequest unload;
  unload.set_model_name("m");
  (*unload.mutable_parameters())["unload_dependents"].set_bool_param(true);
  Call<inference::RepositoryModelUnloadResponse>("RepositoryModelUnload", unload);
  EXPECT_EQ(api_.calls(), (std::vector<std::string>{"load m {}", "unload m"}));

  (*load.mutable_parameters())["file:1/model.onnx"].set_bytes_param("x");
  EXPECT_EQ(Refused("RepositoryModelLoad", load), ErrorCode::kUnsupported);
  load.mutable_parameters()->clear();
  (*load.mutable_parameters())["config"].set_int64_param(1);
  EXPECT_EQ(Refused("RepositoryModelLoad", load), ErrorCode::kInvalidArgument);
  (*unload.mutable_parameters())["other"].set_bool_param(true);
  EXPECT_EQ(Refused("RepositoryModelUnload", unload), ErrorCode::kInvalidArgument);
  api_.load = Fail(ErrorCode::kOverloaded, "explicit mode is off");
  EXPECT_EQ(Refused("RepositoryModelLoad", inference::RepositoryModelLoadRequest()), ErrorCode::kOverloaded);
}

TEST_F(GrpcMethodsTest, RegisterAndForgetRegionsWhereTheyAreAllowed) {
  inference::SystemSharedMemoryRegisterRequest region;
  region.set_name("r");
  region.set_key("/k");
  region.set_byte_size(8);
  Call<inference::SystemSharedMemoryRegisterResponse>("SystemSharedMemoryRegister", region);
  const inference::SystemSharedMemoryStatusRequest all;
  const auto status = Call<inference::SystemSharedMemoryStatusResponse>("SystemSharedMemoryStatus", all);
  EXPECT_EQ(status.regions().at("r").byte_size(), 8u);
  const inference::SystemSharedMemoryUnregisterRequest every;
  Call<inference::SystemSharedMemoryUnregisterResponse>("SystemSharedMemoryUnregister", every);
  EXPECT_EQ(Call<inference::SystemSharedMemoryStatusResponse>("SystemSharedMemoryStatus", all).regions_size(),
            0);
  allow_regions_ = false;
  EXPECT_EQ(Refused("SystemSharedMemoryRegister", region), ErrorCode::kUnsupported);
  EXPECT_EQ(Refused("SystemSharedMemoryStatus", all), ErrorCode::kUnsupported);
  EXPECT_EQ(Refused("SystemSharedMemoryUnregister", every), ErrorCode::kUnsupported);
}

TEST_F(GrpcMethodsTest, HandleMemoryOfAGpu) {
  inference::CudaSharedMemoryStatusRequest status;
  EXPECT_EQ(Call<inference::CudaSharedMemoryStatusResponse>("CudaSharedMemoryStatus", status).regions_size(),
            0);
  inference::CudaSharedMemoryRegisterRequest region;
  region.set_name("r");
  region.set_raw_handle(std::string("\0handle", 7));
  region.set_device_id(1);
  region.set_byte_size(8);
  Call<inference::CudaSharedMemoryRegisterResponse>("CudaSharedMemoryRegister", region);
  const auto told = Call<inference::CudaSharedMemoryStatusResponse>("CudaSharedMemoryStatus", status);
  EXPECT_EQ(told.regions().at("r").device_id(), 1U);
  EXPECT_EQ(told.regions().at("r").byte_size(), 8U);
  EXPECT_EQ(api_.CudaRegions("r")->front().handle, region.raw_handle());
  status.set_name("s");
  EXPECT_EQ(Refused("CudaSharedMemoryStatus", status), ErrorCode::kNotFound);
  inference::CudaSharedMemoryUnregisterRequest unregister;
  unregister.set_name("r");
  EXPECT_TRUE(CallBytes("CudaSharedMemoryUnregister", unregister.SerializeAsString()));
  EXPECT_TRUE(api_.CudaRegions("")->empty());
}

TEST_F(GrpcMethodsTest, WordLoadsThatTheyCannotReadAsTritonDoes) {
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("m");
  (*load.mutable_parameters())["file:1/model.onnx"].set_bytes_param("x");
  EXPECT_EQ(Refused("RepositoryModelLoad", load), ErrorCode::kUnsupported);
  compat_ = Compat::kTriton;
  const auto refused = CallBytes("RepositoryModelLoad", load.SerializeAsString());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInternal);
  EXPECT_TRUE(refused.error().message.starts_with("failed to load 'm', failed to poll from model repository"))
      << refused.error().message;
}

TEST_F(GrpcMethodsTest, TellTheHealthOfTheServiceAsked) {
  using grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  EXPECT_EQ(Call<HealthCheckResponse>("Check", request).status(), HealthCheckResponse::SERVING);
  request.set_service("inference.GRPCInferenceService");
  api_.ready = Fail(ErrorCode::kOverloaded, "draining");
  EXPECT_EQ(Call<HealthCheckResponse>("Check", request).status(), HealthCheckResponse::NOT_SERVING);
  request.set_service("other");
  EXPECT_EQ(Refused("Check", request), ErrorCode::kNotFound);
  HealthCheckResponse watched;
  ASSERT_TRUE(watched.ParseFromString(*WatchHealth(api_, request.SerializeAsString())));
  EXPECT_EQ(watched.status(), HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_F(GrpcMethodsTest, RefuseWhatIsNoMessage) {
  for (const GrpcMethod& method : GrpcMethods()) {
    method.serve({api_, true}, "\xff\xff\xff", [&](Result<std::string> answer) {
      ASSERT_FALSE(answer) << method.name;
      EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument) << method.name;
    });
  }
}

TEST_F(GrpcMethodsTest, FindTheIdOfWhatIsRefused) {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  request.set_id("seven");
  request.add_raw_input_contents("abc");
  const std::string bytes = request.SerializeAsString();
  const auto find = [](std::string_view first, std::string_view second) {
    return FindRequestId(std::vector{Bytes::Copy(first), Bytes::Copy(second)});
  };
  for (size_t i = 0; i <= bytes.size(); ++i) EXPECT_EQ(find(bytes.substr(0, i), bytes.substr(i)), "seven");
  EXPECT_EQ(find(bytes, "\xff\xff\xff\xff\xff\xff"), "seven");
  EXPECT_EQ(find("", ""), "");
  EXPECT_EQ(find("\x1a\x01\xff", ""), "") << "not UTF-8";
}

TEST_F(GrpcMethodsTest, WrapTheAnswersOfAStream) {
  inference::ModelStreamInferResponse response;
  ASSERT_TRUE(response.ParseFromString(WriteStreamError("7", {ErrorCode::kNotFound, "unknown \xff model"})));
  EXPECT_NE(response.error_message().find("unknown"), std::string::npos);
  EXPECT_EQ(response.infer_response().id(), "7");
  inference::ModelInferResponse inner;
  for (const size_t size : {0, 1, 127, 128, 20000}) {
    inner.set_id(std::string(size, 'x'));
    const std::string bytes = inner.SerializeAsString();
    ASSERT_TRUE(response.ParseFromString(WriteStreamPrefix(bytes.size()) + bytes));
    EXPECT_EQ(response.infer_response().id().size(), size);
    EXPECT_EQ(response.error_message(), "");
  }
}

}  // namespace
}  // namespace weir::oip
