#include "serve/complete_options.h"

#include <fmt/format.h>

#include <stop_token>

#include "dataset/objects.h"
#include "serve/repository.h"

namespace weir::serve {
namespace {

void Place(const ListenRequest& listen, const std::string& own, bool wanted, ListenAddress& place) {
  place.address = own.empty() ? listen.address : own;
  if (!wanted) place.port = -1;
}

Status CheckControl(const ServerOptions& options) {
  if (!options.load.empty() && options.control != Repository::Control::kExplicit) {
    return Fail(ErrorCode::kInvalidArgument,
                "--load-model is for --model-control-mode explicit; none serves everything there");
  }
  if (options.control != Repository::Control::kPoll) return {};
  for (const std::string& repository : options.repositories) {
    if (dataset::IsObjectUrl(repository)) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: a repository in an object store is copied once and is not polled: use "
                              "--model-control-mode explicit, or a mounted folder",
                              repository));
    }
  }
  return {};
}

}  // namespace

Status CompleteOptions(const ListenRequest& listen, ServerOptions& options) {
  TRY_STATUS(CheckControl(options));
  for (std::string& repository : options.repositories)
    repository = TRY(dataset::ObjectReader({}).CopyOf(repository, std::stop_token()));
  Place(listen, listen.http_address, listen.http, options.http);
  Place(listen, listen.grpc_address, listen.grpc, options.grpc);
  Place(listen, listen.metrics_address, listen.metrics, options.metrics);
  return {};
}

}  // namespace weir::serve
