#include "oip/grpc/server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

// The library's headers bring macros of these names; ours are meant below.
#undef GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS
#include "base/mutex.h"
#include "oip/health.grpc.pb.h"
#include "oip/oip.grpc.pb.h"
#include "oip/testing/fake_api.h"

namespace weir::oip {
namespace {

using inference::GRPCInferenceService;

inference::ModelInferRequest Request(const std::string& id, std::vector<float> values = {1, 2}) {
  inference::ModelInferRequest request;
  request.set_model_name("identity");
  request.set_id(id);
  auto& input = *request.add_inputs();
  input.set_name("INPUT0");
  input.set_datatype("FP32");
  input.add_shape(static_cast<int64_t>(values.size()));
  request.add_raw_input_contents(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  return request;
}

// Inferences that a test answers when it likes.
class Held {
 public:
  FakeApi::Inference Take() {
    return [this](InferRequest request, infer::Completion completion) {
      MutexLock lock(mutex_);
      calls_.emplace_back(std::move(request), std::move(completion));
      changed_.NotifyAll();
    };
  }
  std::pair<InferRequest, infer::Completion> Next() {
    MutexLock lock(mutex_);
    while (calls_.empty()) changed_.Wait(mutex_);
    auto next = std::move(calls_.front());
    calls_.erase(calls_.begin());
    return next;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<InferRequest, infer::Completion>> calls_ GUARDED_BY(mutex_);
};

void Give(std::pair<InferRequest, infer::Completion>& call) {
  infer::Response response{.model = "identity", .version = "1", .id = call.first.request.id};
  call.second.Answer(std::move(response), {});
}

class OipGrpcServerOnLoopback : public testing::Test {
 protected:
  void Open(OipGrpcServer::Options options = {}) {
    options.port = 0;
    auto server = OipGrpcServer::Create(std::move(options), api_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    channel_ =
        grpc::CreateChannel(fmt::format("127.0.0.1:{}", server_->port()), grpc::InsecureChannelCredentials());
    stub_ = GRPCInferenceService::NewStub(channel_);
  }
  grpc::Status Infer(const inference::ModelInferRequest& request, inference::ModelInferResponse& response) {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, &response);
  }

  const SteadyClock clock_;
  FakeApi api_;
  Held held_;
  std::unique_ptr<OipGrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<GRPCInferenceService::Stub> stub_;
};

TEST_F(OipGrpcServerOnLoopback, AnswersInferencesAndTellsTheServerOfThem) {
  Open();
  for (int i = 0; i < 100; ++i) {
    inference::ModelInferResponse response;
    const auto request =
        Request(std::to_string(i), std::vector<float>(static_cast<size_t>(i) * 1000 + 1, 0.5F));
    ASSERT_TRUE(Infer(request, response).ok());
    EXPECT_EQ(response.id(), std::to_string(i));
    EXPECT_EQ(response.model_version(), "1");
    EXPECT_EQ(response.outputs(0).name(), "OUTPUT0");
    EXPECT_EQ(response.raw_output_contents(0), request.raw_input_contents(0));
  }
  server_.reset();
  const std::vector<RequestTrace> exchanges = api_.exchanges();
  ASSERT_GE(exchanges.size(), 99u) << "the last may have been cut by the end";
  EXPECT_EQ(exchanges[0].model, "identity");
  EXPECT_EQ(exchanges[0].protocol, Protocol::kGrpc);
  EXPECT_GE(exchanges[0].sent, exchanges[0].encoded);
  EXPECT_GE(exchanges[0].encoded, exchanges[0].decoded);
  EXPECT_GE(exchanges[0].decoded, exchanges[0].received);
}

TEST_F(OipGrpcServerOnLoopback, GivesErrorsTheirStatusAndWords) {
  Open({.max_message = 1000});
  inference::ModelInferResponse response;
  auto request = Request("1");
  request.set_model_name("none");
  grpc::Status status = Infer(request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "unknown model 'none'");
  request = Request("1");
  request.clear_raw_input_contents();
  EXPECT_EQ(Infer(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Infer(Request("1", std::vector<float>(1000)), response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::ClientContext context;
  inference::SystemSharedMemoryStatusResponse regions;
  EXPECT_EQ(stub_->SystemSharedMemoryStatus(&context, {}, &regions).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(OipGrpcServerOnLoopback, RefusesMoreBytesThanMayBeInFlight) {
  Open({.max_bytes_in_flight = 1000});
  inference::ModelInferResponse response;
  EXPECT_EQ(Infer(Request("1", std::vector<float>(1000)), response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Infer(Request("1", std::vector<float>(100)), response).ok());
}

TEST_F(OipGrpcServerOnLoopback, RefusesCompressedMessages) {
  Open();
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  inference::ModelInferResponse response;
  EXPECT_EQ(stub_->ModelInfer(&context, Request("1", std::vector<float>(10000)), &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(OipGrpcServerOnLoopback, AnswersTheOtherMethods) {
  Open({.allow_regions = true});
  grpc::ClientContext live, metadata, region, health;
  inference::ServerLiveResponse is_live;
  EXPECT_TRUE(stub_->ServerLive(&live, {}, &is_live).ok());
  EXPECT_TRUE(is_live.live());
  inference::ModelMetadataRequest model;
  model.set_name("identity");
  inference::ModelMetadataResponse told;
  EXPECT_TRUE(stub_->ModelMetadata(&metadata, model, &told).ok());
  EXPECT_EQ(told.platform(), "emulated");
  inference::SystemSharedMemoryStatusResponse regions;
  EXPECT_TRUE(stub_->SystemSharedMemoryStatus(&region, {}, &regions).ok());
  grpc::health::v1::HealthCheckResponse serving;
  EXPECT_TRUE(grpc::health::v1::Health::NewStub(channel_)->Check(&health, {}, &serving).ok());
  EXPECT_EQ(serving.status(), grpc::health::v1::HealthCheckResponse::SERVING);
}

TEST_F(OipGrpcServerOnLoopback, PassesOnDeadlinesAndCancellation) {
  api_.infer = held_.Take();
  Open();
  inference::ModelInferResponse response;
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_seconds(60, GPR_TIMESPAN));
  std::jthread caller([&] {
    EXPECT_EQ(stub_->ModelInfer(&context, Request("1"), &response).error_code(), grpc::StatusCode::CANCELLED);
  });
  auto call = held_.Next();
  const InferRequest& request = call.first;
  ASSERT_TRUE(request.request.deadline.has_value());
  EXPECT_LE(*request.request.deadline, request.received + 61s);  // on the wire it is rounded
  EXPECT_GT(*request.request.deadline, request.received + 30s);
  std::promise<void> left;
  const std::stop_callback on_left(request.request.cancelled, [&] { left.set_value(); });
  context.TryCancel();
  left.get_future().wait();
  Give(call);
}

TEST_F(OipGrpcServerOnLoopback, AnswersAStreamAsItsInferencesAreDone) {
  api_.infer = held_.Take();
  Open();
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  auto bad = Request("bad");
  bad.clear_raw_input_contents();
  inference::ModelStreamInferResponse response;
  stream->Write(Request("first"));
  stream->Write(Request("second"));
  stream->Write(bad);
  stream->WritesDone();
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.infer_response().id(), "bad");
  EXPECT_NE(response.error_message(), "");
  auto first = held_.Next(), second = held_.Next();
  Give(second);
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.infer_response().id(), "second");
  EXPECT_EQ(response.error_message(), "");
  Give(first);
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.infer_response().id(), "first");
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(OipGrpcServerOnLoopback, CarriesAStreamOfManyRequestsWrittenBeforeAnyAnswerIsRead) {
  Open();
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  std::jthread writer([&] {
    for (int i = 0; i < 500; ++i) stream->Write(Request(std::to_string(i), std::vector<float>(3000)));
    stream->WritesDone();
  });
  int answers = 0;
  for (inference::ModelStreamInferResponse response; stream->Read(&response);) {
    answers += response.infer_response().raw_output_contents(0).size() == 12000;
  }
  EXPECT_EQ(answers, 500);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(OipGrpcServerOnLoopback, StopsAStreamWhoseClientLeft) {
  api_.infer = held_.Take();
  Open();
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  stream->Write(Request("1"));
  auto call = held_.Next();
  std::promise<void> left;
  const std::stop_callback on_left(call.first.request.cancelled, [&] { left.set_value(); });
  context.TryCancel();
  left.get_future().wait();
  Give(call);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server_->StopAccepting();
  EXPECT_TRUE(server_->WaitUntilIdle(clock_.Now() + 60s));
}

TEST_F(OipGrpcServerOnLoopback, TellsAWatcherTheHealthAndItsChange) {
  Open();
  grpc::ClientContext context;
  const auto watch = grpc::health::v1::Health::NewStub(channel_)->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse health;
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  api_.leaving = true;
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  api_.leaving = false;
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  server_.reset();
  EXPECT_FALSE(watch->Read(&health));
}

TEST_F(OipGrpcServerOnLoopback, TellsAWatcherOfAChangeThatLastsForOneLook) {
  Open();
  grpc::ClientContext context;
  const auto watch = grpc::health::v1::Health::NewStub(channel_)->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse health;
  ASSERT_TRUE(watch->Read(&health));
  api_.unready_looks = 1;
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), grpc::health::v1::HealthCheckResponse::SERVING);
}

TEST_F(OipGrpcServerOnLoopback, RefusesConnectionsOverTheLimitAndSaysWhy) {
  std::promise<std::pair<GrpcRefusal, std::string>> refused;
  std::atomic<bool> told = false;
  Open({.max_connections = 1, .refused = [&](GrpcRefusal reason, const std::string& who) {
          if (!told.exchange(true)) refused.set_value({reason, who});
        }});
  inference::ModelInferResponse response;
  ASSERT_TRUE(Infer(Request("1"), response).ok());
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto other = GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
      fmt::format("127.0.0.1:{}", server_->port()), grpc::InsecureChannelCredentials(), own));
  grpc::ClientContext context;
  EXPECT_EQ(other->ModelInfer(&context, Request("2"), &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(refused.get_future().get(), std::make_pair(GrpcRefusal::kAddress, std::string("127.0.0.1")));
  EXPECT_TRUE(Infer(Request("3"), response).ok());
}

TEST_F(OipGrpcServerOnLoopback, TellsOfRefusedMessages) {
  std::promise<GrpcRefusal> refused;
  Open({.max_bytes_in_flight = 1000,
        .refused = [&](GrpcRefusal reason, const std::string&) { refused.set_value(reason); }});
  inference::ModelInferResponse response;
  EXPECT_FALSE(Infer(Request("1", std::vector<float>(1000)), response).ok());
  EXPECT_EQ(refused.get_future().get(), GrpcRefusal::kMessage);
}

TEST_F(OipGrpcServerOnLoopback, ServesOverIpv6) {
  Open({.address = "::1"});
  const auto stub = GRPCInferenceService::NewStub(
      grpc::CreateChannel(fmt::format("[::1]:{}", server_->port()), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  inference::ModelInferResponse response;
  EXPECT_TRUE(stub->ModelInfer(&context, Request("1"), &response).ok());
}

TEST_F(OipGrpcServerOnLoopback, FinishesWhatIsUnderWayWhenItStops) {
  api_.infer = held_.Take();
  Open({.threads = 2});
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  stream->Write(Request("streamed"));
  auto streamed = held_.Next();
  inference::ModelInferResponse response;
  std::jthread caller([&] { EXPECT_TRUE(Infer(Request("1"), response).ok()); });
  auto call = held_.Next();
  server_->StopAccepting();
  EXPECT_FALSE(server_->WaitUntilIdle(clock_.Now() + 1ms));
  inference::ModelInferResponse refused;
  EXPECT_EQ(Infer(Request("2"), refused).error_code(), grpc::StatusCode::UNAVAILABLE);
  Give(call);
  Give(streamed);
  inference::ModelStreamInferResponse answer;
  EXPECT_TRUE(stream->Read(&answer));
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(server_->WaitUntilIdle(clock_.Now() + 60s));
}

TEST_F(OipGrpcServerOnLoopback, MayBeGoneBeforeAnAnswerComes) {
  api_.infer = held_.Take();
  Open();
  inference::ModelInferResponse response;
  std::jthread caller([&] { EXPECT_FALSE(Infer(Request("1"), response).ok()); });
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  stream->Write(Request("streamed"));
  auto first = held_.Next(), second = held_.Next();
  server_.reset();
  EXPECT_TRUE(first.first.request.cancelled.stop_requested());
  EXPECT_TRUE(second.first.request.cancelled.stop_requested());
  Give(first);
  Give(second);
}

TEST_F(OipGrpcServerOnLoopback, SaysWhichAddressItCannotHave) {
  Open();
  const auto second = OipGrpcServer::Create({.port = server_->port()}, api_, clock_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_EQ(
      second.error().message,
      fmt::format("gRPC port {} is in use on 127.0.0.1; choose another with --grpc-port", server_->port()));
}

}  // namespace
}  // namespace weir::oip
