#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/secrets.h"
#include "http/client_options.h"
#include "load/session/target.h"
#include "oip/http/plain_http.h"

namespace weir::load {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Any HTTP server. Each request has one input, the body (session_requests.cc).
class PlainTarget final : public Target {
 public:
  PlainTarget(std::string server, std::string path, http::ClientOptions options, const LoadOptions& load,
              const Clock& clock)
      : server_(std::move(server)), path_(std::move(path)), options_(options), load_(load), clock_(clock) {
    info_.name = path_;
  }
  Status Open() {
    client_ = TRY(oip::PlainHttp::Create(server_, options_, clock_));
    return {};
  }

  infer::Service& service() override { return *client_; }
  bool is_driven() const override { return options_.threads == 0; }
  Duration Drive(Instant until, Duration awake) override { return client_->Drive(until, awake); }
  void GiveUp() override {
    client_.reset();
    client_ = oip::PlainHttp::Create(server_, options_, clock_).value();  // as it was made before
  }
  const infer::ModelInfo& info() const override { return info_; }
  std::string version() const override { return ""; }
  std::string Title() const override { return fmt::format("{} {}{}", load_.method, server_, path_); }
  std::string protocol() const override { return std::string(ToString(infer::Protocol::kHttp)); }
  std::optional<infer::PhaseTotals> Statistics() override { return std::nullopt; }
  Status Prepare(Requests& requests) override;

 private:
  const std::string server_, path_;
  const http::ClientOptions options_;
  const LoadOptions& load_;
  const Clock& clock_;
  infer::ModelInfo info_;
  std::unique_ptr<oip::PlainHttp> client_;
};

Status PlainTarget::Prepare(Requests& requests) {
  for (infer::Request& request : requests.pool) {
    oip::PlainRequest plain{.method = load_.method, .path = path_};
    if (!request.inputs.empty()) {
      plain.content_type = load_.content_type;
      plain.body = request.inputs.front().data;
    }
    request = {};
    request.prepared = TRY(client_->Prepare(plain));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Target>> OpenPlainTarget(const LoadOptions& load, const Clock& clock) {
  const LoadOptions usual;
  const std::pair<const char*, bool> others[] = {
      {"MODEL", !load.target.empty()},
      {"-m", !load.model.empty()},
      {"-u", !load.url.empty()},
      {"-x", !load.version.empty()},
      {"-i", load.protocol != usual.protocol},
      {"--data", !load.data.empty()},
      {"--input-data", !load.input_data.empty()},
      {"--shape", !load.shapes.empty()},
      {"--payload", load.payload != usual.payload},
      {"--check", !load.check.empty()},
      {"--shared-memory", load.shared_memory != usual.shared_memory},
      {"--engine", !load.engine.empty()},
      {"--device", !load.device.empty()},
      {"--cuda-graph", load.cuda_graph},
      {"--preprocess", load.preprocess.has_value()},
      {"--precision", !load.precision.empty()},
      {"--channels", load.channels != 1},
      {"--priority", load.priority > 0},
      {"--batch-size", load.batch != 1},
      {"--zero-input", load.zero_input},
      {"--string-data", !load.string_data.empty()},
      {"--string-length", load.string_length != usual.string_length},
      {"--pool", load.pool != usual.pool},
      {"--calibrate", load.calibrate},
      {"--split", load.splits_responses()},
      {"--engine-threads", load.engine_threads > 0},
      {"--engine-streams", load.engine_streams > 0}};
  for (const auto& [name, given] : others) {
    if (given)
      return Invalid(
          fmt::format("{} is of models, and --endpoint knows of none: leave one of them out", name));
  }
  const std::string_view url = load.endpoint;
  if (EndOfUser(url) > 0)
    return Invalid("--endpoint takes no user or password in its URL: give -H \"Authorization: ...\"");
  const size_t scheme = url.find("://");
  const size_t slash = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  const std::string server(url.substr(0, slash));
  std::string path = slash == std::string::npos ? "/" : std::string(url.substr(slash));
  const http::ClientOptions options{.connections = load.connections,
                                    .threads = load.sync ? std::max(1, load.threads) : load.threads,
                                    .headers = load.headers};
  auto target = std::make_unique<PlainTarget>(server, std::move(path), options, load, clock);
  const Status opened = target->Open();
  if (!opened) return Context("--endpoint", opened.error());
  return target;
}

}  // namespace weir::load
