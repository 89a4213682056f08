// The protocol servers alone: a fake answers an identity at once, so a request costs what the servers cost.
//   echo_servers HTTP_PORT GRPC_PORT [THREADS]   serves any model until it is killed; port 0: that server
//   stays disabled POST /echo over HTTP gives the body back without reading it: the transport alone
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "http/http_server.h"
#include "oip/grpc/server.h"
#include "oip/http/server.h"
#include "oip/testing/fake_api.h"

namespace {

using namespace weir;

void Identity(oip::InferRequest request, infer::Completion completion) {
  infer::Response response{.model = std::move(request.request.model), .version = "1"};
  response.id = std::move(request.request.id);
  response.outputs = std::move(request.request.inputs);
  for (infer::Tensor& output : response.outputs) output.name = "OUTPUT0";
  completion.Answer(std::move(response), {});
}

template <typename T>
std::unique_ptr<T> Opened(Result<std::unique_ptr<T>> server) {
  if (server) return *std::move(server);
  std::fprintf(stderr, "%s\n", server.error().message.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "echo_servers HTTP_PORT GRPC_PORT [THREADS]\n");
    return 2;
  }
  const int http_port = std::atoi(argv[1]), grpc_port = std::atoi(argv[2]);
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  sigset_t stop;  // blocked before any thread starts, so that sigwait below has them
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  const SteadyClock clock;
  oip::FakeApi api;
  api.infer = Identity;
  std::unique_ptr<http::HttpServer> http;
  std::unique_ptr<oip::OipGrpcServer> grpc;
  if (http_port > 0) {
    auto server = oip::MakeOipHttpHandler(api, clock, {});
    auto handler = [server](http::HttpRequest request, http::HttpResponder responder) {
      if (request.path != "/echo") return server(std::move(request), std::move(responder));
      responder.Send({.content_type = "application/octet-stream", .body = {std::move(request.body)}});
    };
    http = Opened(http::HttpServer::Create(
        {.port = http_port, .threads = threads, .align_after = std::string(oip::kHeaderLengthName)}, handler,
        clock));
  }
  if (grpc_port > 0)
    grpc = Opened(oip::OipGrpcServer::Create({.port = grpc_port, .threads = threads}, api, clock));
  int signal = 0;
  sigwait(&stop, &signal);
}
