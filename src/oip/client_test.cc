#include "oip/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <set>

#include "http/testing/scripted_server.h"
#include "infer/testing/answers.h"
#include "oip/grpc/server.h"
#include "oip/http/server.h"
#include "oip/testing/fake_api.h"

namespace weir::oip {
namespace {

using infer::testing::Answered;
using infer::testing::Answers;
using infer::testing::Floats;
using infer::testing::FloatTensor;

// Both clients against our own servers, with a fake behind them.
class ClientTest : public ::testing::TestWithParam<Protocol> {
 protected:
  // After the fake has been told how to behave.
  std::unique_ptr<infer::Endpoint> Open(const http::ClientOptions& options = {}) {
    if (GetParam() == Protocol::kHttp) {
      http_ = *http::HttpServer::Create({.port = 0, .align_after = std::string(kHeaderLengthName)},
                                        MakeOipHttpHandler(api_, clock_, {}), clock_);
      return *MakeClient("http://127.0.0.1:" + std::to_string(http_->port()), options, clock_);
    }
    grpc_ = *OipGrpcServer::Create({.port = 0}, api_, clock_);
    return *MakeClient("grpc://127.0.0.1:" + std::to_string(grpc_->port()), options, clock_);
  }
  infer::Call MakeCall(const std::string& id, std::vector<infer::Tensor> inputs) {
    infer::Call call = answers_.MakeCall(id, std::move(inputs));
    call.request.model = "identity";
    return call;
  }
  // The answer to one call.
  Answered Ask(infer::Endpoint& client, infer::Call call) {
    const size_t before = answers_.count();
    client.Submit(std::move(call));
    return answers_.Wait(before + 1).back();
  }

  const SteadyClock clock_;
  FakeApi api_;
  Answers answers_;

 private:
  std::unique_ptr<http::HttpServer> http_;
  std::unique_ptr<OipGrpcServer> grpc_;
};
INSTANTIATE_TEST_SUITE_P(Protocols, ClientTest, ::testing::Values(Protocol::kHttp, Protocol::kGrpc),
                         [](const auto& info) { return std::string(ToString(info.param)); });

TEST_P(ClientTest, TensorsOfEveryTypeComeBackAsTheyWent) {
  const auto client = Open();
  for (const infer::DType dtype : {infer::DType::kBool, infer::DType::kUint8, infer::DType::kInt16,
                                   infer::DType::kFp16, infer::DType::kBf16, infer::DType::kInt32,
                                   infer::DType::kFp32, infer::DType::kUint64, infer::DType::kFp64}) {
    const infer::Tensor sent{.name = "INPUT0",
                             .dtype = dtype,
                             .shape = {2, 3},
                             .data = Bytes::Allocate(6 * infer::ByteSize(dtype))};
    const Answered answer = Ask(*client, MakeCall("7", {sent}));
    ASSERT_TRUE(answer.result) << answer.result.error().message;
    EXPECT_EQ(answer.result->id, "7");
    EXPECT_EQ(answer.result->model, "identity");
    ASSERT_EQ(answer.result->outputs.size(), 1U);
    EXPECT_EQ(answer.result->outputs[0].dtype, dtype);
    EXPECT_EQ(answer.result->outputs[0].shape, sent.shape);
    EXPECT_EQ(answer.result->outputs[0].data.text(), sent.data.text());
  }
}

TEST_P(ClientTest, TextAndNothingComeBackAsTheyWent) {
  const auto client = Open();
  const std::string text("\x02\0\0\0ab\0\0\0\0", 10);
  const Answered words = Ask(
      *client,
      MakeCall("1",
               {{.name = "INPUT0", .dtype = infer::DType::kBytes, .shape = {2}, .data = Bytes::Copy(text)}}));
  ASSERT_TRUE(words.result) << words.result.error().message;
  EXPECT_EQ(words.result->outputs[0].data.text(), text);
  const Answered nothing = Ask(*client, MakeCall("2", {{.name = "INPUT0", .shape = {0, 4}}}));
  ASSERT_TRUE(nothing.result) << nothing.result.error().message;
  EXPECT_EQ(nothing.result->outputs[0].shape, (infer::Shape{0, 4}));
}

TEST_P(ClientTest, EveryCallGetsItsOwnAnswerAndTimes) {
  const auto client = Open({.threads = 2});
  for (int i = 0; i < 200; ++i) {
    const auto value = static_cast<float>(i);
    client->Submit(
        MakeCall(std::to_string(i), {FloatTensor("INPUT0", {1000}, std::vector<float>(1000, value))}));
  }
  std::set<std::string> ids;
  for (const Answered& answer : answers_.Wait(200)) {
    ASSERT_TRUE(answer.result) << answer.result.error().message;
    EXPECT_EQ(answer.result->id, answer.id);
    EXPECT_EQ(Floats(answer.result->outputs[0]).back(), std::stof(answer.id));
    EXPECT_LE(answer.times.sent, answer.times.done);
    EXPECT_EQ(answer.times.first_byte.has_value(), GetParam() == Protocol::kHttp);
    ids.insert(answer.id);
  }
  EXPECT_EQ(ids.size(), 200U);
}

TEST_P(ClientTest, APreparedRequestIsSentAsOftenAsOneLikes) {
  const auto client = Open();
  const infer::Call call = MakeCall("7", {FloatTensor("INPUT0", {2}, {1, 2})});
  for (const auto outputs : {infer::RequestForm::Outputs::kRead, infer::RequestForm::Outputs::kPassOver}) {
    const auto prepared = client->Prepare(call.request, {.outputs = outputs});
    for (int i = 0; i < 3; ++i) {
      infer::Call again = MakeCall("", {});
      again.request = {};
      again.request.prepared = prepared;
      const Answered answer = Ask(*client, std::move(again));
      ASSERT_TRUE(answer.result) << answer.result.error().message;
      EXPECT_TRUE(answer.times.sent.has_value());
      if (outputs == infer::RequestForm::Outputs::kPassOver) {
        EXPECT_TRUE(answer.result->outputs.empty());
      } else {
        EXPECT_EQ(answer.result->id, "7");
        EXPECT_EQ(Floats(answer.result->outputs[0]), (std::vector<float>{1, 2}));
      }
    }
  }
}

TEST_P(ClientTest, AnAnswerThatIsNotReadIsHeldToWhatItSaysOfItself) {
  std::atomic<int64_t> said = 2;
  api_.infer = [&](InferRequest, infer::Completion completion) {
    infer::Tensor y = FloatTensor("y", {2}, {1, 2});
    y.shape = {said};
    infer::Response response;
    response.model = "identity";
    response.outputs.push_back(std::move(y));
    completion.Answer(std::move(response), {});
  };
  const auto client = Open();
  const infer::Call call = MakeCall("", {FloatTensor("INPUT0", {1}, {1})});
  const auto prepared = client->Prepare(call.request, {.outputs = infer::RequestForm::Outputs::kPassOver});
  for (const int64_t elements : {2, 2, 3, 1, 2}) {  // two are there
    said = elements;
    infer::Call next = MakeCall("", {});
    next.request = {};
    next.request.prepared = prepared;
    const Answered answer = Ask(*client, std::move(next));
    EXPECT_EQ(answer.result.has_value(), elements == 2) << elements;
    if (!answer.result) {
      EXPECT_EQ(answer.result.error().code, ErrorCode::kCorrupt) << answer.result.error().message;
    }
  }
}

TEST_P(ClientTest, DurationsComeWhereTheyAreAskedForHoweverTheRequestIsSent) {
  const infer::ServerDurations told{.queue = 2ms, .compute_infer = 3ms, .rest = -1us};
  bool tells = true;
  api_.infer = [&](InferRequest request, infer::Completion completion) {
    infer::Response response{.model = "identity", .outputs = std::move(request.request.inputs)};
    if (request.request.durations && tells) response.durations = told;
    completion.Answer(std::move(response), {});
  };
  const auto client = Open();
  infer::Call call = MakeCall("7", {FloatTensor("INPUT0", {2}, {1, 2})});
  EXPECT_FALSE(Ask(*client, MakeCall("6", {FloatTensor("INPUT0", {2}, {1, 2})})).result->durations);
  call.request.durations = true;
  const infer::Request request = call.request;
  EXPECT_EQ(Ask(*client, std::move(call)).result->durations, told);
  for (const auto outputs : {infer::RequestForm::Outputs::kRead, infer::RequestForm::Outputs::kPassOver}) {
    infer::Call again = MakeCall("", {});
    again.request = {};
    again.request.prepared = client->Prepare(request, {.outputs = outputs});
    const Answered answer = Ask(*client, std::move(again));
    ASSERT_TRUE(answer.result) << answer.result.error().message;
    EXPECT_EQ(answer.result->durations, told);
    EXPECT_EQ(answer.result->outputs.empty(), outputs == infer::RequestForm::Outputs::kPassOver);
  }
  tells = false;
  infer::Call unanswered = MakeCall("8", {});
  unanswered.request = request;
  const Error error = Ask(*client, std::move(unanswered)).result.error();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("weir_durations"), std::string::npos) << error.message;
}

TEST_P(ClientTest, WithoutThreadsAllGoesOnWhileItIsDriven) {
  const auto client = Open({.threads = 0});
  const SteadyClock clock;
  int answered = 0;
  for (int i = 0; i < 10; ++i) {
    infer::Call call = MakeCall("", {FloatTensor("INPUT0", {2}, {1, 2})});
    call.completion = infer::Completion([&](const auto& result, const auto&) {
      EXPECT_TRUE(result.has_value());
      ++answered;
    });
    client->Submit(std::move(call));
  }
  const Instant until = clock.Now() + 10s;
  while (answered < 10 && clock.Now() < until) client->Drive(clock.Now() + 1ms, 0ms);
  EXPECT_EQ(answered, 10);
}

// Answers and the end of a wait that are there at once, more than are handed over in one go.
TEST_P(ClientTest, AWaitThatIsOverEndsNoLaterOne) {
  constexpr int kCalls = 16;
  const auto client = Open({.connections = kCalls, .threads = 0});
  const SteadyClock clock;
  Duration spun{};
  for (int i = 0; i < 40; ++i) {
    int answered = 0;
    for (int k = 0; k < kCalls; ++k) {
      infer::Call call = MakeCall("", {FloatTensor("INPUT0", {2}, {1, 2})});
      call.completion = infer::Completion([&](const auto&, const auto&) { ++answered; });
      client->Submit(std::move(call));
    }
    const Instant there = clock.Now() + 2ms;  // most of them are by then
    while (clock.Now() < there) {
    }
    client->Drive(clock.Now() + i * 250ns, 0ms);
    spun += client->Drive(clock.Now() + 2ms, 0ms);
    const Instant until = clock.Now() + 10s;
    while (answered < kCalls && clock.Now() < until) spun += client->Drive(clock.Now() + 1ms, 0ms);
    ASSERT_EQ(answered, kCalls);
  }
  EXPECT_LT(spun, 20ms);  // of the 80 ms that they wait
}

TEST_P(ClientTest, LargeTensorsGoBothWaysAndAreLetGoOfWhenSent) {
  const auto client = Open();
  auto payload = std::make_shared<std::vector<float>>(1 << 20);
  for (size_t i = 0; i < payload->size(); ++i) (*payload)[i] = static_cast<float>(i);
  const std::vector<float> expected = *payload;
  infer::Tensor tensor{.name = "INPUT0", .shape = {1 << 20}};
  tensor.data =
      Bytes::Wrap(payload, reinterpret_cast<std::byte*>(payload->data()), payload->size() * sizeof(float));
  std::binary_semaphore done(0);
  infer::Call call;
  call.request.model = "identity";
  call.request.inputs.push_back(std::move(tensor));
  call.completion = infer::Completion([&, weak = std::weak_ptr(payload)](auto result, const auto&) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(Floats(result->outputs[0]) == expected);
    EXPECT_TRUE(weak.expired());
    done.release();
  });
  payload.reset();
  client->Submit(std::move(call));
  done.acquire();
}

TEST_P(ClientTest, TheServersErrorsComeWithTheirCodeAndWords) {
  Error error;
  api_.infer = [&](InferRequest, infer::Completion completion) {
    completion.Answer(std::unexpected(error), {});
  };
  const auto client = Open();
  for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kOverloaded,
                               ErrorCode::kUnsupported, ErrorCode::kInternal}) {
    error = {code, "the \"shape\" of x: [2,3] \xE2\x82\xAC"};
    const Answered answer = Ask(*client, MakeCall("1", {FloatTensor("INPUT0", {1}, {1})}));
    ASSERT_FALSE(answer.result);
    EXPECT_EQ(answer.result.error(), error);
  }
}

TEST_P(ClientTest, OfLongWordsOfTheServerTheBeginningIsKept) {
  api_.infer = [&](InferRequest, infer::Completion completion) {
    completion.Answer(Fail(ErrorCode::kInternal, "a" + std::string(999, 'b') + std::string(2000, 'c')), {});
  };
  const auto client = Open();
  const Answered answer = Ask(*client, MakeCall("1", {FloatTensor("INPUT0", {1}, {1})}));
  ASSERT_FALSE(answer.result);
  EXPECT_EQ(answer.result.error().message, "a" + std::string(999, 'b') + "...");
}

// Keeps calls without answering them, and tells when one has come and when its client has left.
class Silence {
 public:
  FakeApi::Inference inference() {
    return [this](InferRequest request, infer::Completion completion) {
      completion_ = std::move(completion);
      left_.emplace(std::move(request.request.cancelled), [this] { left.release(); });
      arrived.release();
    };
  }
  std::counting_semaphore<> arrived{0}, left{0};

 private:
  infer::Completion completion_;
  std::optional<std::stop_callback<std::function<void()>>> left_;
};

TEST_P(ClientTest, TheDeadlineEndsTheCallAndTheServerHearsOfIt) {
  Silence silence;
  api_.infer = silence.inference();
  const auto client = Open();
  infer::Call call = MakeCall("1", {FloatTensor("INPUT0", {1}, {1})});
  call.request.deadline = clock_.Now() + 100ms;
  const Answered answer = Ask(*client, std::move(call));
  ASSERT_FALSE(answer.result);
  EXPECT_EQ(answer.result.error().code, ErrorCode::kDeadline);
  silence.left.acquire();
}

TEST_P(ClientTest, TheTimeoutOfTheClientIsADeadlineToo) {
  Silence silence;
  api_.infer = silence.inference();
  const auto client = Open({.timeout = 100ms});
  const Answered answer = Ask(*client, MakeCall("1", {FloatTensor("INPUT0", {1}, {1})}));
  ASSERT_FALSE(answer.result);
  EXPECT_EQ(answer.result.error().code, ErrorCode::kDeadline);
  silence.left.acquire();
}

TEST_P(ClientTest, TheCallersWishEndsTheCallAndTheServerHearsOfIt) {
  Silence silence;
  api_.infer = silence.inference();
  const auto client = Open();
  std::stop_source caller;
  infer::Call call = MakeCall("1", {FloatTensor("INPUT0", {1}, {1})});
  call.request.cancelled = caller.get_token();
  client->Submit(std::move(call));
  silence.arrived.acquire();
  caller.request_stop();
  const Answered answer = answers_.Wait(1).front();
  ASSERT_FALSE(answer.result);
  EXPECT_EQ(answer.result.error().code, ErrorCode::kCancelled);
  silence.left.acquire();
}

TEST_P(ClientTest, TheEndCancelsWhatIsUnderWay) {
  Silence silence;
  api_.infer = silence.inference();
  auto client = Open();
  client->Submit(MakeCall("1", {FloatTensor("INPUT0", {1}, {1})}));
  silence.arrived.acquire();
  client.reset();
  EXPECT_EQ(answers_.Wait(1).front().result.error().code, ErrorCode::kCancelled);
}

TEST_P(ClientTest, NoServerIsAnErrorThatNamesTheAddress) {
  std::string address;
  {
    const http::testing::ScriptedServer gone([](http::testing::Peer&, int) {});
    address = gone.url().substr(7);
  }
  const std::string scheme = std::string(ToString(GetParam())) + "://";
  const auto client = *MakeClient(scheme + address, {}, clock_);
  const Answered answer = Ask(*client, MakeCall("1", {FloatTensor("INPUT0", {1}, {1})}));
  ASSERT_FALSE(answer.result);
  EXPECT_EQ(answer.result.error().code, ErrorCode::kIo);
  EXPECT_NE(answer.result.error().message.find("connect to " + address), std::string::npos);
  EXPECT_EQ(client->Models().error().code, ErrorCode::kIo);
}

TEST_P(ClientTest, TellsOfTheServersModels) {
  const auto client = Open();
  EXPECT_EQ(*client->Models(), std::vector<std::string>{"identity"});
  const auto info = client->Info("identity", "");
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->name, "identity");
  EXPECT_EQ(info->versions, std::vector<std::string>{"1"});
  EXPECT_EQ(info->inputs, (std::vector<infer::TensorInfo>{{"INPUT0", infer::DType::kFp32, {-1}}}));
  EXPECT_EQ(info->max_batch, 0);
  const auto statistics = client->Statistics("identity", "1");
  ASSERT_TRUE(statistics) << statistics.error().message;
  EXPECT_EQ(statistics->rows, 3U);
  EXPECT_EQ(statistics->batches, 2U);
  EXPECT_EQ(statistics->success.total, 7us);
  EXPECT_EQ(*client->Extensions(), (std::vector<std::string>{"binary_tensor_data", "statistics"}));
}

TEST_P(ClientTest, AModelThatIsNotThereIsNotFound) {
  const auto client = Open();
  EXPECT_EQ(client->Info("nobody", "").error(), (Error{ErrorCode::kNotFound, "unknown model 'nobody'"}));
  EXPECT_EQ(client->Info("identity", "9").error().code, ErrorCode::kNotFound);
}

TEST(HttpClient, AnAnswerThatMakesNoSenseIsCorruptAndTheClientGoesOn) {
  const std::vector<std::string> bodies = {
      "",
      "null",
      "[]",
      "{",
      "{\"outputs\":3}",
      R"({"outputs":[{"name":"y","datatype":"FP32","shape":[9],"data":[1]}]})"};
  http::testing::ScriptedServer server([&](http::testing::Peer& peer, int) {
    for (size_t i = 0; !peer.ReadRequest().empty(); ++i) peer.WriteOk(bodies[i % bodies.size()]);
  });
  const SteadyClock clock;
  const auto client = *MakeClient(server.url(), {.connections = 1}, clock);
  Answers answers;
  for (size_t i = 1; i <= bodies.size(); ++i) {
    client->Submit(answers.MakeCall("1", {FloatTensor("x", {1}, {1})}));
    const auto result = answers.Wait(i).back().result;
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kCorrupt) << result.error().message;
  }
  EXPECT_EQ(client->Info("m", "").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, AnAnswerThatIsNotReadMustBeAsLongAsItSays) {
  const std::string json =
      R"({"outputs":[{"name":"y","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]})";
  const std::vector<std::string> tensors = {"12345678", "12345678", "123", "12345678"};
  http::testing::ScriptedServer server([&](http::testing::Peer& peer, int) {
    for (size_t i = 0; !peer.ReadRequest().empty(); ++i) {
      peer.Write(fmt::format(
          "HTTP/1.1 200 OK\r\nInference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n{}{}",
          json.size(), json.size() + tensors[i].size(), json, tensors[i]));
    }
  });
  const SteadyClock clock;
  const auto client = *MakeClient(server.url(), {.connections = 1}, clock);
  Answers answers;
  const infer::Request request{.model = "m", .inputs = {FloatTensor("x", {1}, {1})}};
  const auto prepared = client->Prepare(request, {.outputs = infer::RequestForm::Outputs::kPassOver});
  for (size_t i = 0; i < tensors.size(); ++i) {
    infer::Call next = answers.MakeCall("1", {});
    next.request = {};
    next.request.prepared = prepared;
    client->Submit(std::move(next));
    const auto result = answers.Wait(i + 1).back().result;
    EXPECT_EQ(result.has_value(), tensors[i].size() == 8) << i;
    if (!result) {
      EXPECT_EQ(result.error().code, ErrorCode::kCorrupt) << result.error().message;
    }
  }
}

TEST(HttpClient, ServersWithoutTheExtensionsAreUnsupportedOrDoWithoutThem) {
  http::testing::ScriptedServer server([&](http::testing::Peer& peer, int) {
    for (std::string request; !(request = peer.ReadRequest()).empty();) {
      if (request.starts_with("GET /v2/models/a%20b HTTP/1.1\r\n")) {
        peer.WriteOk(R"({"name":"a b","platform":"p","inputs":[],"outputs":[]})");
      } else {
        peer.Write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
      }
    }
  });
  const SteadyClock clock;
  const auto client = *MakeClient(server.url(), {}, clock);
  EXPECT_EQ(client->Info("a b", "")->platform, "p");
  EXPECT_EQ(client->Models().error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(client->Extensions()->empty());
  EXPECT_EQ(client->Statistics("a b", "").error().code, ErrorCode::kUnsupported);
  const Error error = client->Info("b", "").error();
  EXPECT_EQ(error, (Error{ErrorCode::kNotFound, "the server answered with HTTP status 404"}));
}

// A server of HTTP/2 that answers no call: a gRPC server in this process would look at the client's sockets,
// too.
class Http2Peer {
 public:
  void Play(http::testing::Peer& peer) {
    using std::string_view_literals::operator""sv;
    constexpr size_t kPreface = 24, kHead = 9;
    constexpr char kSettings = 4, kPing = 6;
    peer.Read(kPreface);
    peer.Write("\0\0\0\4\0\0\0\0\0"sv);
    for (std::string head; (head = peer.Read(kHead)).size() == kHead;) {
      peer.Read(static_cast<size_t>(static_cast<uint8_t>(head[1])) << 8 | static_cast<uint8_t>(head[2]));
      const bool is_acknowledgement = (head[4] & 1) != 0;
      if (head[3] == kSettings && !is_acknowledgement) peer.Write("\0\0\0\4\1\0\0\0\0"sv);
      if (head[3] == kSettings && is_acknowledgement) connected_ = &peer;
      if (head[3] == kPing && is_acknowledgement) answered = true;
    }
  }
  bool connected() const { return connected_ != nullptr; }
  void Ping() {
    using std::string_view_literals::operator""sv;
    connected_.load()->Write("\0\0\10\6\0\0\0\0\0weir-1st"sv);
  }
  std::atomic<bool> answered = false;  // the ping

 private:
  std::atomic<http::testing::Peer*> connected_ = nullptr;
};

TEST(GrpcClient, ReadsWhatComesWhereCallsTimeOutAsFastAsTheyAreTaken) {
  Http2Peer peer;
  const http::testing::ScriptedServer server(
      [&](http::testing::Peer& connection, int) { peer.Play(connection); });
  const SteadyClock clock;
  const auto client = *MakeClient(fmt::format("grpc://127.0.0.1:{}", server.port()), {.threads = 0}, clock);
  Instant until = clock.Now() + 20s;
  const auto submit = [&](std::optional<Instant> deadline) {
    infer::Call call;
    call.request = {.model = "m", .inputs = {FloatTensor("x", {1}, {1})}, .deadline = deadline};
    client->Submit(std::move(call));
  };
  submit(std::nullopt);
  while (!peer.connected() && clock.Now() < until) client->Drive(clock.Now() + 1ms, 0ms);
  ASSERT_TRUE(peer.connected());
  // The library looks at every socket by itself each five seconds.
  until = clock.Now() + 4s;
  // As a generator does that is behind its schedule: calls, and no time for more than one that has ended.
  const auto fall_behind = [&](int calls) {
    for (int i = 0; i < calls; ++i) submit(clock.Now() - 1ms);
    client->Drive(clock.Now(), 0ms);
  };
  for (int i = 0; i < 1000; ++i) fall_behind(4);
  peer.Ping();
  while (!peer.answered && clock.Now() < until) fall_behind(1);
  EXPECT_TRUE(peer.answered);
}

TEST(Client, RefusesBadOptionsAndUrls) {
  const SteadyClock clock;
  EXPECT_EQ(MakeClient("http://h:1", {.threads = -1}, clock).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(MakeClient("grpc://h:1", {.connections = -1}, clock).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(MakeClient("h:1", {}, clock).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::oip
