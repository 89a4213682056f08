#include "oip/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "oip/testing/fake_api.h"

namespace weir::oip {
namespace {

using testing::HasSubstr;

// Takes the answer in place of a socket; it goes out at once.
class Taker final : public http::HttpResponder::Connection {
 public:
  explicit Taker(const Clock& clock) : clock_(clock) {}
  void Answer(uint64_t, http::HttpResponse given, http::HttpResponder::Sent sent) override {
    reply = std::move(given);
    if (sent) sent(clock_.Now());
  }
  std::optional<http::HttpResponse> reply;

 private:
  const Clock& clock_;
};

struct Ask {
  std::string_view verb = "GET";
  std::string_view path;
  std::string_view body = "";
  std::vector<std::pair<std::string_view, std::string_view>> headers = {};
};

class OipHttpServer : public testing::Test {
 protected:
  http::HttpResponse Send(const Ask& ask) {
    const std::shared_ptr<Taker> taker = Begin(ask);
    return taker->reply ? *std::move(taker->reply) : http::HttpResponse{.status = 0};
  }
  std::shared_ptr<Taker> Begin(const Ask& ask) {
    http::HttpRequest request{.method = ask.verb, .path = ask.path, .headers = ask.headers};
    request.origin = request.Header("Origin");
    request.body = Bytes::Copy(ask.body);
    request.first_byte = clock_.Now();
    clock_.Advance(1us);
    request.received = clock_.Now();
    request.left = left_.get_token();
    const auto taker = std::make_shared<Taker>(clock_);
    MakeOipHttpHandler(api_, clock_, options_)(std::move(request), http::HttpResponder(taker, 0));
    return taker;
  }
  static std::string Text(const http::HttpResponse& reply) {
    std::string text;
    for (const Bytes& part : reply.body) text += part.text();
    return text;
  }
  static std::string Header(const http::HttpResponse& reply, std::string_view name) {
    for (const auto& [key, value] : reply.headers) {
      if (key == name) return value;
    }
    return "";
  }
  std::string Told(std::string_view path) {
    const http::HttpResponse reply = Send({.path = path});
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_EQ(reply.content_type, "application/json");
    return Text(reply);
  }

  FakeApi api_;
  ManualClock clock_;
  OipHttpOptions options_;
  std::stop_source left_;
};

constexpr std::string_view kJsonRequest =
    R"({"id":"7","inputs":[{"name":"INPUT0","shape":[2],"datatype":"FP32","data":[1,2.5]}]})";

TEST_F(OipHttpServer, SaysThatItIsLiveAndReady) {
  EXPECT_EQ(Told("/v2/health/live"), R"({"live":true})");
  EXPECT_EQ(Told("/v2/health/ready"), R"({"ready":true})");
  EXPECT_EQ(Told("/v2/models/identity/ready"), R"({"name":"identity","ready":true})");
  EXPECT_EQ(Told("/v2/models/identity/versions/1/ready/"), R"({"name":"identity","ready":true})");
}

TEST_F(OipHttpServer, SaysWhyItIsNotReady) {
  api_.ready = Fail(ErrorCode::kInternal, "model 'x' failed");
  http::HttpResponse reply = Send({.path = "/v2/health/ready"});
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(Header(reply, "Retry-After"), "1");
  EXPECT_EQ(Text(reply), R"({"ready":false,"error":"model 'x' failed"})");
  api_.ready = Fail(ErrorCode::kOverloaded, "it is loading");
  EXPECT_EQ(Send({.path = "/v2/models/identity/ready"}).status, 503);
  EXPECT_EQ(Send({.path = "/v2/models/none/ready"}).status, 404);
  options_.compat = Compat::kTriton;
  EXPECT_EQ(Send({.path = "/v2/health/ready"}).status, 400);
  EXPECT_EQ(Send({.path = "/v2/models/identity/ready"}).status, 400);
}

TEST_F(OipHttpServer, TellsOfItselfAndItsModelsInTritonsWords) {
  EXPECT_EQ(Told("/v2"),
            R"({"name":"weir","version":"0.1.0","extensions":["binary_tensor_data","statistics"]})");
  EXPECT_EQ(Told("/v2/models/identity"), R"({"name":"identity","versions":["1"],"platform":"emulated",)"
                                         R"("inputs":[{"name":"INPUT0","datatype":"FP32","shape":[-1]}],)"
                                         R"("outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[-1]}]})");
  EXPECT_EQ(Told("/v2/models/identity/config"), R"({"name":"identity","max_batch_size":0})");
  EXPECT_EQ(
      Told("/v2/models/identity/stats"),
      R"({"model_stats":[{"name":"identity","version":"1","last_inference":5,"inference_count":3,)"
      R"("execution_count":2,"inference_stats":{"success":{"count":2,"ns":7000},"fail":{"count":0,"ns":0},)"
      R"("queue":{"count":0,"ns":0},"compute_input":{"count":0,"ns":0},"compute_infer":{"count":0,"ns":0},)"
      R"("compute_output":{"count":0,"ns":0},"cache_hit":{"count":0,"ns":0},"cache_miss":{"count":0,"ns":0}},)"
      R"("batch_stats":[{"batch_size":1,"compute_input":{"count":0,"ns":0},)"
      R"("compute_infer":{"count":2,"ns":4000},"compute_output":{"count":0,"ns":0}}]}]})");
  EXPECT_EQ(Told("/v2/models/stats"), Told("/v2/models/identity/stats"));
}

TEST_F(OipHttpServer, AnswersEveryFaultWithAStatusAndAnError) {
  const struct {
    Ask ask;
    int status;
  } table[] = {
      {{.path = "/v2/nothing"}, 404},
      {{.path = "/v2/models/none"}, 404},
      {{.path = "/v2/models/identity/versions/9"}, 404},
      {{.path = "/v2/models/a%00b"}, 400},
      {{.verb = "POST", .path = "/v2"}, 405},
      {{.verb = "HEAD", .path = "/v2/repository/index"}, 405},
      {{.verb = "POST", .path = "/v2/models/none/infer", .body = kJsonRequest}, 404},
      {{.verb = "POST", .path = "/v2/models/identity/infer", .body = "{"}, 400},
      {{.verb = "POST", .path = "/v2/models/identity/infer"}, 400},
      {{.verb = "POST",
        .path = "/v2/models/identity/infer",
        .body = "x",
        .headers = {{"Content-Type", "text/plain"}}},
       415},
      {{.verb = "POST",
        .path = "/v2/models/identity/infer",
        .body = kJsonRequest,
        .headers = {{kHeaderLengthName, "x"}}},
       400},
      {{.verb = "POST",
        .path = "/v2/models/identity/infer",
        .body = kJsonRequest,
        .headers = {{kHeaderLengthName, "-1"}}},
       400},
      {{.verb = "POST",
        .path = "/v2/models/identity/infer",
        .body = kJsonRequest,
        .headers = {{kHeaderLengthName, "99999"}}},
       400},
      {{.verb = "POST", .path = "/v2/repository/index", .body = "[]"}, 400},
      {{.verb = "POST", .path = "/v2/repository/index", .body = R"({"ready":1})"}, 400},
      {{.verb = "POST", .path = "/v2/repository/other/index"}, 501},
      {{.verb = "POST", .path = "/v2/repository/models/identity/load", .body = R"({"parameters":{"x":1}})"},
       400},
      {{.verb = "POST",
        .path = "/v2/repository/models/identity/load",
        .body = R"({"parameters":{"config":1}})"},
       400},
      {{.verb = "POST",
        .path = "/v2/repository/models/identity/load",
        .body = R"({"parameters":{"file:1/model.onnx":"AA=="}})"},
       501},
      {{.path = "/v2/systemsharedmemory/status"}, 501},
  };
  for (const auto& entry : table) {
    const http::HttpResponse reply = Send(entry.ask);
    EXPECT_EQ(reply.status, entry.status) << entry.ask.path << " " << entry.ask.body;
    const Result<Json> json = ParseJson(Text(reply));
    ASSERT_TRUE(json) << Text(reply);
    EXPECT_TRUE(json->contains("error")) << Text(reply);
  }
  EXPECT_EQ(Header(Send({.verb = "POST", .path = "/v2"}), "Allow"), "GET, HEAD");
}

TEST_F(OipHttpServer, TakesBodiesOfTheTypesThatNoFormAndNoSimpleScriptCanSend) {
  const auto unload = [&](std::vector<std::pair<std::string_view, std::string_view>> headers,
                          std::string_view body = "{}") {
    return Send({.verb = "POST", .path = "/v2/repository/models/m/unload", .body = body, .headers = headers})
        .status;
  };
  EXPECT_EQ(unload({}), 200) << "Triton's Python client names no type";
  EXPECT_EQ(unload({{"Content-Type", ""}}), 200);
  EXPECT_EQ(unload({{"Content-Type", "Application/JSON ; charset=utf-8"}}), 200);
  EXPECT_EQ(unload({{"Content-Type", "application/octet-stream"}}), 200);
  for (const std::string_view type :
       {"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/json"}) {
    EXPECT_EQ(unload({{"Content-Type", type}}), 415) << type;
    EXPECT_EQ(unload({{"Content-Type", type}}, ""), 415) << type << ": a form without fields";
  }
  const std::string_view form = "application/x-www-form-urlencoded";
  EXPECT_EQ(unload({{"Content-Type", form}, {"User-Agent", "libcurl-agent/1.0"}}), 200)
      << "Triton's C++ client cannot do otherwise";
  EXPECT_EQ(
      unload({{"Content-Type", form}, {"User-Agent", "libcurl-agent/1.0"}, {"Origin", "http://localhost"}}),
      415);
  EXPECT_EQ(unload({{"Origin", "http://localhost"}}), 415) << "an untyped blob of a script";
  EXPECT_EQ(unload({{"Origin", "http://localhost"}}, ""), 200);
  EXPECT_EQ(unload({{"Origin", "http://localhost"}, {"Content-Type", "application/json"}}), 200);
}

TEST_F(OipHttpServer, KnowsProbesFromWork) {
  const auto is_probe = [](std::string_view method, std::string_view path) {
    return IsHealthProbe({.method = method, .path = path});
  };
  EXPECT_TRUE(is_probe("GET", "/v2/health/live"));
  EXPECT_TRUE(is_probe("HEAD", "/v2/health/ready/"));
  EXPECT_TRUE(is_probe("GET", "/v2/models/m/versions/1/ready"));
  EXPECT_FALSE(is_probe("POST", "/v2/health/live"));
  EXPECT_FALSE(is_probe("GET", "/v2/models/m"));
  EXPECT_FALSE(is_probe("POST", "/v2/models/m/infer"));
  EXPECT_FALSE(is_probe("GET", "/v2/nothing"));
}

TEST_F(OipHttpServer, ReadsAndWritesLargeJsonOnItsPool) {
  std::string name(16, '\0');
  api_.infer = [&](InferRequest request, infer::Completion completion) {
    pthread_getname_np(pthread_self(), name.data(), name.size());
    request.request.inputs.at(0).name = "OUTPUT0";
    completion.Answer(infer::Response{.model = "identity", .version = "1", .outputs = request.request.inputs},
                      {});
  };
  const std::string here = [] {
    std::string text(16, '\0');
    pthread_getname_np(pthread_self(), text.data(), text.size());
    return text;
  }();
  http::WorkPool pool({.name = "json", .threads = 1});
  options_.json_pool = &pool;
  options_.large_json = kJsonRequest.size() + 1;
  const Ask ask{.verb = "POST", .path = "/v2/models/identity/infer", .body = kJsonRequest};
  EXPECT_EQ(Send(ask).status, 200);
  EXPECT_EQ(name, here) << "a small body does not change threads";
  options_.large_json = 8;
  const std::shared_ptr<Taker> taker = Begin(ask);
  pool.Stop();
  ASSERT_TRUE(taker->reply);
  EXPECT_EQ(taker->reply->status, 200);
  EXPECT_THAT(Text(*taker->reply), HasSubstr("[1,2.5]"));
  EXPECT_TRUE(name.starts_with("json-0")) << name;
}

TEST_F(OipHttpServer, RefusesLargeJsonThatItsPoolHasNoRoomFor) {
  http::WorkPool pool({.name = "json", .threads = 1});
  pool.Stop();
  int full = 0;
  options_.json_pool = &pool;
  options_.large_json = 8;
  options_.on_pool_full = [&] { ++full; };
  const http::HttpResponse reply =
      Send({.verb = "POST", .path = "/v2/models/identity/infer", .body = kJsonRequest});
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(Header(reply, "Retry-After"), "1");
  EXPECT_EQ(full, 1);
}

TEST_F(OipHttpServer, BeginsNoLargeJsonOfAClientThatLeft) {
  http::WorkPool pool({.name = "json", .threads = 1});
  options_.json_pool = &pool;
  options_.large_json = 8;
  left_.request_stop();
  const std::shared_ptr<Taker> taker =
      Begin({.verb = "POST", .path = "/v2/models/identity/infer", .body = kJsonRequest});
  pool.Stop();
  ASSERT_TRUE(taker->reply);
  EXPECT_EQ(taker->reply->status, 499);
}

TEST_F(OipHttpServer, GivesAnInferenceInJsonItsAnswerInJson) {
  const http::HttpResponse reply = Send({.verb = "POST",
                                         .path = "/v2/models/identity/infer",
                                         .body = kJsonRequest,
                                         .headers = {{"content-type", "application/json; charset=utf-8"}}});
  ASSERT_EQ(reply.status, 200) << Text(reply);
  EXPECT_EQ(Header(reply, kHeaderLengthName), "");
  const Json json = *ParseJson(Text(reply));
  EXPECT_EQ(json["model_name"], "identity");
  EXPECT_EQ(json["model_version"], "1");
  EXPECT_EQ(json["id"], "7");
  EXPECT_EQ(json["outputs"][0]["data"], (Json{1.0, 2.5}));
}

TEST_F(OipHttpServer, GivesABinaryInferenceItsAnswerInBinaryWithoutACopy) {
  std::string header =
      R"({"inputs":[{"name":"INPUT0","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}],)"
      R"("parameters":{"binary_data_output":true}})";
  header.resize((header.size() + 3) / 4 * 4, ' ');  // what is not aligned is copied
  const std::string data("\0\0\x80\x3f\0\0\0\x40", 8);
  const std::byte* input = nullptr;
  api_.infer = [&](InferRequest request, infer::Completion completion) {
    input = request.request.inputs.at(0).data.data();
    EXPECT_EQ(request.request.version, "1");
    request.request.inputs[0].name = "OUTPUT0";
    completion.Answer(infer::Response{.model = "identity", .version = "1", .outputs = request.request.inputs},
                      {});
  };
  const std::string length = std::to_string(header.size());
  const std::string body = header + data;
  const http::HttpResponse reply = Send({.verb = "POST",
                                         .path = "/v2/models/identity/versions/1/infer",
                                         .body = body,
                                         .headers = {{kHeaderLengthName, length}}});
  ASSERT_EQ(reply.status, 200) << Text(reply);
  EXPECT_EQ(reply.content_type, "application/octet-stream");
  const std::string text = Text(reply);
  EXPECT_EQ(text.substr(std::stoul(Header(reply, kHeaderLengthName))), data);
  EXPECT_EQ(reply.body.back().data(), input);
}

TEST_F(OipHttpServer, TakesRawBytesAsTheOnlyInput) {
  const std::string data("\0\0\x80\x3f\0\0\0\x40", 8);
  const http::HttpResponse reply = Send({.verb = "POST",
                                         .path = "/v2/models/identity/infer",
                                         .body = data,
                                         .headers = {{kHeaderLengthName, "0"}}});
  ASSERT_EQ(reply.status, 200) << Text(reply);
  EXPECT_TRUE(Text(reply).ends_with(data));
  EXPECT_THAT(Text(reply), HasSubstr(R"("shape":[2])"));
}

TEST_F(OipHttpServer, TellsTheServerHowAnInferenceWent) {
  Send({.verb = "POST", .path = "/v2/models/identity/infer", .body = kJsonRequest});
  Send({.verb = "POST", .path = "/v2/models/none/infer", .body = kJsonRequest});
  Send({.verb = "POST", .path = "/v2/models/identity/infer", .body = "{"});
  const std::vector<RequestTrace> exchanges = api_.exchanges();
  ASSERT_EQ(exchanges.size(), 3u);
  EXPECT_EQ(exchanges[0].model, "identity");
  EXPECT_EQ(exchanges[0].version, "1");
  EXPECT_EQ(exchanges[0].protocol, Protocol::kHttp);
  EXPECT_FALSE(exchanges[0].error.has_value());
  EXPECT_EQ(exchanges[0].received - exchanges[0].first_byte, 1us);
  EXPECT_GE(exchanges[0].sent, exchanges[0].encoded);
  EXPECT_GE(exchanges[0].encoded, exchanges[0].decoded);
  EXPECT_EQ(exchanges[1].error, ErrorCode::kNotFound);
  EXPECT_EQ(exchanges[2].error, ErrorCode::kInvalidArgument);
}

TEST_F(OipHttpServer, PassesOnThatTheClientLeft) {
  std::stop_token cancelled;
  api_.infer = [&](InferRequest request, infer::Completion completion) {
    cancelled = request.request.cancelled;
    completion.Answer(Fail(ErrorCode::kCancelled, "the client left"), {});
  };
  EXPECT_EQ(Send({.verb = "POST", .path = "/v2/models/identity/infer", .body = kJsonRequest}).status, 499);
  left_.request_stop();
  EXPECT_TRUE(cancelled.stop_requested());
  options_.compat = Compat::kTriton;
  EXPECT_EQ(Send({.verb = "POST", .path = "/v2/models/identity/infer", .body = kJsonRequest}).status, 400);
}

TEST_F(OipHttpServer, AnswersAnInferenceThatWasDropped) {
  api_.infer = [](InferRequest, infer::Completion) {};
  EXPECT_EQ(Send({.verb = "POST", .path = "/v2/models/identity/infer", .body = kJsonRequest}).status, 499);
}

TEST_F(OipHttpServer, SaysWhenToComeAgain) {
  api_.infer = [](InferRequest, infer::Completion completion) {
    completion.Answer(Fail(ErrorCode::kOverloaded, "the queue is full"), {});
  };
  const http::HttpResponse reply =
      Send({.verb = "POST", .path = "/v2/models/identity/infer", .body = kJsonRequest});
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(Header(reply, "Retry-After"), "1");
}

TEST_F(OipHttpServer, ListsLoadsAndUnloads) {
  EXPECT_EQ(Text(Send({.verb = "POST", .path = "/v2/repository/index"})),
            R"([{"name":"identity","version":"1","state":"READY"},)"
            R"({"name":"broken","state":"UNAVAILABLE","reason":"no file"}])");
  EXPECT_EQ(Text(Send({.verb = "POST", .path = "/v2/repository/index", .body = R"({"ready":true})"})),
            R"([{"name":"identity","version":"1","state":"READY"}])");
  EXPECT_EQ(Send({.verb = "POST", .path = "/v2/repository/models/a%2Fb/load"}).status, 200);
  EXPECT_EQ(Send({.verb = "POST",
                  .path = "/v2/repository/models/m/load",
                  .body = R"({"parameters":{"config":"{}"}})"})
                .status,
            200);
  EXPECT_EQ(Send({.verb = "POST",
                  .path = "/v2/repository/models/m/unload",
                  .body = R"({"parameters":{"unload_dependents":false}})"})
                .status,
            200);
  EXPECT_EQ(api_.calls(), (std::vector<std::string>{"load a/b ", "load m {}", "unload m"}));
  api_.load = Fail(ErrorCode::kOverloaded, "explicit mode is off");
  EXPECT_EQ(Send({.verb = "POST", .path = "/v2/repository/models/m/load"}).status, 503);
}

TEST_F(OipHttpServer, RegistersAndForgetsRegionsWhereTheyAreAllowed) {
  options_.allow_regions = true;
  const auto post = [&](std::string_view path, std::string_view body = "") {
    return Send({.verb = "POST", .path = path, .body = body}).status;
  };
  EXPECT_EQ(post("/v2/systemsharedmemory/region/r/register", R"({"key":"/k","offset":4,"byte_size":8})"),
            200);
  EXPECT_EQ(Told("/v2/systemsharedmemory/status"), R"([{"name":"r","key":"/k","offset":4,"byte_size":8}])");
  EXPECT_EQ(Told("/v2/systemsharedmemory/region/r/status"),
            R"([{"name":"r","key":"/k","offset":4,"byte_size":8}])");
  EXPECT_EQ(Send({.path = "/v2/systemsharedmemory/region/s/status"}).status, 404);
  EXPECT_EQ(post("/v2/systemsharedmemory/region/r/register", R"({"key":"/k","byte_size":-8})"), 400);
  EXPECT_EQ(post("/v2/systemsharedmemory/region/r/register", R"({"byte_size":8})"), 400);
  EXPECT_EQ(post("/v2/systemsharedmemory/region/r/unregister"), 200);
  EXPECT_EQ(Told("/v2/systemsharedmemory/status"), "[]");
}

TEST_F(OipHttpServer, HandlesMemoryOfAGpu) {
  const auto post = [&](std::string_view path, std::string_view body = {}) {
    return Send({.verb = "POST", .path = path, .body = body}).status;
  };
  EXPECT_EQ(Told("/v2/cudasharedmemory/status"), "[]");
  const std::string_view registers = "/v2/cudasharedmemory/region/r/register";
  EXPECT_EQ(post(registers, R"({"raw_handle":{"b64":"AGhhbmRsZQ=="},"device_id":1,"byte_size":8})"), 200);
  EXPECT_EQ(Told("/v2/cudasharedmemory/status"), R"([{"name":"r","device_id":1,"byte_size":8}])");
  EXPECT_EQ(Told("/v2/cudasharedmemory/region/r/status"), R"([{"name":"r","device_id":1,"byte_size":8}])");
  EXPECT_EQ(api_.CudaRegions("r")->front().handle, std::string("\0handle", 7));
  EXPECT_EQ(Send({.path = "/v2/cudasharedmemory/region/s/status"}).status, 404);
  for (const std::string_view wrong :
       {R"({"byte_size":8})", R"({"raw_handle":"AA==","byte_size":8})", R"({"raw_handle":{},"byte_size":8})",
        R"({"raw_handle":{"b64":"A"},"byte_size":8})", R"({"raw_handle":{"b64":"AA=="}})",
        R"({"raw_handle":{"b64":"AA=="},"byte_size":8,"device_id":-1})",
        R"({"raw_handle":{"b64":"AA=="},"byte_size":8,"device_id":9999999999})"}) {
    EXPECT_EQ(post(registers, wrong), 400) << wrong;
  }
  EXPECT_EQ(post("/v2/cudasharedmemory/region/r/unregister"), 200);
  EXPECT_EQ(post("/v2/cudasharedmemory/unregister"), 200);
  EXPECT_EQ(Told("/v2/cudasharedmemory/status"), "[]");
}

TEST_F(OipHttpServer, WordsLoadsThatItCannotReadAsTritonDoes) {
  const Ask with_file{.verb = "POST",
                      .path = "/v2/repository/models/m/load",
                      .body = R"({"parameters":{"config":"{}","file:1/model.onnx":"AA=="}})"};
  EXPECT_EQ(Send(with_file).status, 501);
  options_.compat = Compat::kTriton;
  const http::HttpResponse reply = Send(with_file);
  EXPECT_EQ(reply.status, 500);
  EXPECT_THAT(Text(reply), HasSubstr("failed to load 'm', failed to poll from model repository ("));
  EXPECT_TRUE(api_.calls().empty());
}

}  // namespace
}  // namespace weir::oip
