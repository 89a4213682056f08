#include "load/session/target.h"

#include <fmt/format.h>

#include <utility>

#include "oip/client.h"

namespace weir::load {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace

Result<std::string> UrlOf(const LoadOptions& load) {
  if (load.model.empty()) return Invalid("load wants a model: MODEL, or -m NAME with -u HOST:PORT");
  const bool grpc = load.protocol == infer::Protocol::kGrpc;
  std::string server = load.url.empty() ? (grpc ? "localhost:8001" : "localhost:8000") : load.url;
  if (const size_t scheme = server.find("://"); scheme != std::string::npos) {
    if (!FindChoice(infer::kProtocols, std::string_view(server).substr(0, scheme)))
      return Invalid(fmt::format("-u {}: HOST:PORT, http:// or grpc:// is understood", load.url));
    if (grpc) server = "grpc" + server.substr(scheme);
  } else {
    server = (grpc ? "grpc://" : "http://") + server;
  }
  return server + "/" + load.model + (load.version.empty() ? "" : "/versions/" + load.version);
}

Result<std::unique_ptr<Target>> OpenTarget(const LoadOptions& load, const Clock& clock, int most_in_flight) {
  if (!load.endpoint.empty()) return OpenPlainTarget(load, clock);
  if (!load.target.empty() && (!load.model.empty() || !load.url.empty()))
    return Invalid(fmt::format("{} names the model already: leave -m and -u out", load.target));
  if (load.target.empty()) return OpenRemoteTarget(load, TRY(UrlOf(load)), clock);
  if (oip::IsModelUrl(load.target)) {
    if (!load.version.empty())
      return Invalid(
          fmt::format("-x says nothing of a URL: {}/versions/{} names it", load.target, load.version));
    return OpenRemoteTarget(load, load.target, clock);
  }
  if (load.payload != infer::Payload::kTensor)
    return Invalid(
        fmt::format("--payload {} is for served models: in this process the model is given its tensor",
                    ToString(load.payload)));
  const LoadOptions usual;
  if (load.connections != usual.connections || load.channels != usual.channels ||
      load.threads != usual.threads)
    return Invalid(
        "--connections, --channels and --io-threads are of a server: in this process there is no way to it");
  if (load.calibrate)
    return Invalid("--calibrate measures the way to a server: in this process there is none");
  if (load.splits_responses())
    return Invalid("--split response asks a server: in this process there is none to tell");
  if (load.priority > 0)
    return Invalid("--priority is for served models: in this process nothing waits beside these requests");
  if (!load.headers.empty()) return Invalid("-H is of a server: in this process there is nobody to read it");
  if (load.balance != usual.balance)
    return Invalid("--balance is of several servers: in this process there is one model");
  if (load.shared_memory != infer::SharedMemory::kNone)
    return Invalid("--shared-memory is for servers: in this process the model is given its tensor");
  return OpenLocalTarget(load, clock, most_in_flight);
}

}  // namespace weir::load
