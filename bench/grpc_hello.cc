// The least that a server on the gRPC library costs: one completion queue, one thread, the message sent back.
// ./dev bench serving measures weir's own server beside it.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <string>

#include "oip/oip.grpc.pb.h"

namespace {

using Service =
    inference::GRPCInferenceService::WithRawMethod_ModelInfer<inference::GRPCInferenceService::Service>;

class Echo {
 public:
  Echo(Service& service, grpc::ServerCompletionQueue& queue) : service_(service), queue_(queue) {
    service_.RequestModelInfer(&context_, &message_, &writer_, &queue_, &queue_, this);
  }

  void Proceed(bool ok) {
    if (!ok || finished_) {
      delete this;
      return;
    }
    new Echo(service_, queue_);
    finished_ = true;
    writer_.Finish(message_, grpc::Status::OK, this);
  }

 private:
  Service& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer message_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  bool finished_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("grpc_hello PORT\n", stderr);
    return 2;
  }
  Service service;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort(std::string("127.0.0.1:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  new Echo(service, *queue);
  void* tag = nullptr;
  for (bool ok = false; queue->Next(&tag, &ok);) static_cast<Echo*>(tag)->Proceed(ok);
}
