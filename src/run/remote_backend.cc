#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "dataset/recipe.h"
#include "infer/server_times.h"
#include "model/fit.h"
#include "oip/api.h"
#include "oip/client.h"
#include "oip/served_name.h"
#include "oip/server_account.h"
#include "oip/server_shares.h"
#include "run/backend.h"

namespace weir::run {
namespace {

constexpr std::chrono::minutes kPatience{
    10};                        // for one batch: a silent server must not hold the run for ever
constexpr int kUsualDepth = 4;  // batches in flight, unless the user says

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Refuses flags of an engine in this process: a server's engine has its own settings.
Status RefuseLocalFlags(const BackendOptions& options) {
  const std::pair<const char*, bool> local[] = {{"--engine", !options.engine.empty()},
                                                {"--device", !options.device.empty()},
                                                {"--preprocess", options.preprocess.has_value()},
                                                {"--cuda-graph", options.cuda_graph},
                                                {"--gpu-memory-mb", options.gpu_memory_mb > 0},
                                                {"--precision", !options.precision.empty()},
                                                {"--threads", options.threads > 0},
                                                {"--streams", options.streams > 0},
                                                {"--allow-link", !options.allow_links.empty()},
                                                {"--cache-dir", !options.cache_dir.empty()}};
  for (const auto& [name, given] : local) {
    if (given) {
      return Invalid(
          fmt::format("{} is the server's to say ({} is a URL): leave it out, and set it in the "
                      "configuration of the model there",
                      name, options.model));
    }
  }
  if (options.payload != infer::Payload::kImage) return {};
  const BackendOptions usual;
  const std::pair<const char*, bool> decoding[] = {{"--recipe", !options.recipe.empty()},
                                                   {"--tolerate-damage", options.tolerate_damage},
                                                   {"--max-pixels", options.max_pixels != usual.max_pixels}};
  for (const auto& [name, given] : decoding) {
    if (given)
      return Invalid(
          fmt::format("{} says nothing with --payload image: the server decodes and prepares", name));
  }
  return {};
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class RemoteBackend final : public Backend {
 public:
  RemoteBackend(const BackendOptions& options, const Clock& clock) : options_(options), clock_(clock) {}
  Status Open();

  Status Load() override { return {}; }
  infer::Service& service() override { return *client_; }
  int in_flight() const override { return options_.in_flight > 0 ? options_.in_flight : kUsualDepth; }
  bool invents_answers() const override { return Reported("engine").starts_with("emulated"); }
  std::string Title() const override;
  BackendDescription Describe() const override;
  std::map<std::string, std::string> Libraries() const override { return {}; }
  monitor::ResourceMonitor::Options WatchOptions() const override { return {}; }
  void Begin() override { before_ = Statistics(); }
  void End() override;
  void Attribute(double cpu_s, monitor::Resources& resources, Costs& costs) const override;

 private:
  Result<infer::ModelInfo> Ask();
  Result<dataset::Recipe> FindRecipe() const;
  Result<std::vector<std::string>> FindLabels(const dataset::Recipe& recipe) const;
  Result<Target> FindTarget() const;
  std::optional<infer::PhaseTotals> Statistics();
  results::ServerAccount Account(const Costs& costs) const;
  std::string Reported(const std::string& parameter) const {
    const auto found = info_.parameters.find(parameter);
    return found == info_.parameters.end() ? "" : found->second;
  }

  const BackendOptions& options_;
  const Clock& clock_;
  oip::ModelUrl url_;
  std::string served_as_;                                // the model's name with the payload's ending
  std::unique_ptr<infer::Endpoint> client_, questions_;  // the second only where the first cannot be asked
  infer::ModelInfo info_;
  std::optional<infer::PhaseTotals> before_;
  std::optional<infer::MeanServerTimes> times_;
};

Status RemoteBackend::Open() {
  const Instant begin = clock_.Now();
  url_ = TRY(oip::ParseModelUrl(options_.model));
  name_ = url_.model;
  served_as_ = oip::ServedAs(url_.model, options_.payload);
  const infer::Balance balance = options_.balance;
  TRY_STATUS(oip::CheckBalance(balance, url_.server));
  client_ = TRY(oip::MakeClient(url_.server, {.timeout = kPatience}, clock_, balance));
  // A balanced channel cannot ask each server for its statistics.
  if (balance == infer::Balance::kGrpcRoundRobin)
    questions_ = TRY(oip::MakeClient(url_.server, {.timeout = kPatience}, clock_));
  info_ = TRY(Ask());
  TRY_STATUS(Aim(TRY_CONTEXT(FindTarget(), options_.model),
                 info_.max_batch > 0 ? std::optional(info_.max_batch) : std::nullopt, options_));
  prepare_s_ = Seconds(clock_.Now() - begin);
  return {};
}

Result<infer::ModelInfo> RemoteBackend::Ask() {
  const auto questions = TRY(oip::MakeClient(
      url_.server, {.headers = {fmt::format("{}: true", oip::kLabelsHeader)}, .timeout = kPatience}, clock_));
  auto info = questions->Info(served_as_, url_.version);
  if (info || info.error().code != ErrorCode::kNotFound) return info;
  if (options_.payload == infer::Payload::kTensor) return Context(url_.server, info.error());
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("{}: {}; --payload {} needs a weir server whose model has a recipe: --payload tensor "
                  "does without",
                  url_.server, info.error().message, ToString(options_.payload)));
}

Result<dataset::Recipe> RemoteBackend::FindRecipe() const {
  if (!options_.recipe.empty()) return dataset::ReadRecipe(options_.recipe);
  const std::string reported = Reported("recipe");
  if (reported.empty())
    return Invalid("the server tells no recipe: say with --recipe FILE how pictures become the input");
  return TRY_CONTEXT(dataset::ParseRecipe(reported, ""), "the recipe that the server tells");
}

Result<std::vector<std::string>> RemoteBackend::FindLabels(const dataset::Recipe& recipe) const {
  if (!options_.recipe.empty() && !recipe.labels.empty()) return dataset::ReadLabels(recipe.labels);
  return Lines(Reported("labels"));
}

Result<Target> RemoteBackend::FindTarget() const {
  dataset::Recipe recipe = TRY(FindRecipe());
  std::vector<std::string> labels = TRY(FindLabels(recipe));
  if (options_.payload != infer::Payload::kTensor) {  // the server's own recipe does the rest
    recipe.input.clear();
    recipe.layout = dataset::Layout::kNhwc;
    recipe.datatype = dataset::ElementType::kUint8;
  }
  if (options_.payload != infer::Payload::kImage) {
    const Status fits = model::CheckFits(recipe, {info_.inputs, info_.outputs});
    if (!fits) return Context("the recipe", fits.error());
  }
  Target target = TRY(MakeTarget({served_as_, info_.inputs, info_.outputs}, recipe, std::move(labels)));
  target.version = url_.version;
  if (options_.payload == infer::Payload::kImage) target.form = Form::kFile;
  const infer::Shape& shape = target.input.shape;
  if (!shape.empty() && shape.front() > 0) target.fixed_batch = static_cast<int>(shape.front());
  return target;
}

std::string RemoteBackend::Title() const {
  const std::string engine = Reported("engine"), precision = Reported("precision_in_force");
  return fmt::format("at {}{}{}{}{}", url_.server, engine.empty() ? "" : ", " + EscapeBytes(engine),
                     precision.empty() ? "" : ", " + EscapeBytes(precision), ", payload ",
                     ToString(options_.payload));
}

BackendDescription RemoteBackend::Describe() const {
  return {.engine = Reported("engine"),
          .engine_version = {},
          .precision = Reported("precision_in_force"),
          .not_batchable = {},
          .threads = {},
          .streams = {},
          .server = url_.server,
          .payload = std::string(ToString(options_.payload)),
          .platform = info_.platform,
          .times = times_,
          .servers = oip::SharesOf(options_.balance, client_->Calls())};
}

// Statistics are an extension that a server may lack; the run does not depend on them.
std::optional<infer::PhaseTotals> RemoteBackend::Statistics() {
  auto statistics = (questions_ ? questions_ : client_)->Statistics(served_as_, url_.version);
  return statistics ? std::optional(*statistics) : std::nullopt;
}

// Several servers behind one URL, or several URLs, tell of one of them.
results::ServerAccount RemoteBackend::Account(const Costs& costs) const {
  const double batches = costs.images / std::max(1, batch_);
  const bool alone = client_->Calls().size() <= 1;
  results::ServerAccount account = oip::AccountOf(*times_, batches, batch_);
  if (alone) oip::AddConfigured(info_, 1, costs.in_flight * batch_, account);
  return account;
}

void RemoteBackend::End() {
  const auto after = Statistics();
  // The counts of a model that was reloaded meanwhile start from 0.
  if (before_ && after && after->success.count > before_->success.count)
    times_ = infer::MeanTimesOf(*after - *before_);
}

// All CPU time of this process is the application's; the server's machine cannot be observed from here.
void RemoteBackend::Attribute(double cpu_s, monitor::Resources& resources, Costs& costs) const {
  costs.remote = true;
  costs.other_cpu_s = std::max(0.0, cpu_s - costs.load_cpu_s);
  if (times_) costs.server = results::CostsOf(Account(costs));
  resources.server_cpu.reset();
  resources.recogniser_cpu.reset();
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenRemoteBackend(const BackendOptions& options, const Clock& clock) {
  TRY_STATUS(RefuseLocalFlags(options));
  auto backend = std::make_unique<RemoteBackend>(options, clock);
  TRY_STATUS(backend->Open());
  return backend;
}

}  // namespace weir::run
