#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "cli/backend.h"
#include "cli/console.h"
#include "cli/server_times.h"
#include "dataset/recipe.h"
#include "model/fit.h"
#include "oip/api.h"
#include "oip/client.h"
#include "oip/served_name.h"

namespace weir::cli {
namespace {

constexpr std::chrono::minutes kPatience{10};  // with one batch: a server that says nothing must not hold us
constexpr int kUsualDepth = 4;                 // batches in flight, where the user does not say

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Flags of an engine in this process, which a server decides for itself.
Status RefuseLocalFlags(const RunFlags& flags) {
  const std::pair<const char*, bool> local[] = {{"--engine", !flags.engine.empty()},
                                                {"--precision", !flags.precision.empty()},
                                                {"--threads", flags.threads > 0},
                                                {"--streams", flags.streams > 0},
                                                {"--cache-dir", !flags.cache_dir.empty()}};
  for (const auto& [name, given] : local) {
    if (given) {
      return Invalid(
          fmt::format("{} is the server's to say ({} is a URL): leave it out, and set it in the "
                      "configuration of the model there",
                      name, flags.model));
    }
  }
  if (flags.payload != "image") return {};
  const RunFlags usual;
  const std::pair<const char*, bool> decoding[] = {{"--recipe", !flags.recipe.empty()},
                                                   {"--tolerate-damage", flags.tolerate_damage},
                                                   {"--max-pixels", flags.max_pixels != usual.max_pixels}};
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
  RemoteBackend(const RunFlags& flags, const Clock& clock) : flags_(flags), clock_(clock) {}
  Status Open();

  Status Load() override { return {}; }
  infer::Service& service() override { return *client_; }
  int in_flight() const override { return flags_.in_flight > 0 ? flags_.in_flight : kUsualDepth; }
  bool invents_answers() const override { return Told("engine").starts_with("emulated"); }
  std::string Title() const override;
  void Describe(Json& result) const override;
  std::map<std::string, std::string> Libraries() const override { return {}; }
  monitor::ResourceMonitor::Options WatchOptions() const override { return {}; }
  void Begin() override { before_ = Statistics(); }
  void End() override;
  void Attribute(double cpu_s, monitor::Resources& resources, run::Costs& costs) const override;
  std::string ServerLine(const run::Report& report) const override;

 private:
  Result<infer::ModelInfo> Ask();
  Result<dataset::Recipe> FindRecipe() const;
  Result<std::vector<std::string>> FindLabels(const dataset::Recipe& recipe) const;
  Result<run::Target> FindTarget() const;
  std::optional<infer::PhaseTotals> Statistics();
  std::string Told(const std::string& parameter) const {
    const auto found = info_.parameters.find(parameter);
    return found == info_.parameters.end() ? "" : found->second;
  }

  const RunFlags& flags_;
  const Clock& clock_;
  oip::ModelUrl url_;
  std::string served_as_;  // the model's name with the payload's ending
  std::unique_ptr<infer::Endpoint> client_;
  infer::ModelInfo info_;
  std::optional<infer::PhaseTotals> before_;
  std::optional<ServerTimes> times_;
};

Status RemoteBackend::Open() {
  const Instant begin = clock_.Now();
  url_ = TRY(oip::ParseModelUrl(flags_.model));
  name_ = url_.model;
  served_as_ = oip::ServedAs(url_.model, flags_.payload);
  client_ = TRY(oip::MakeClient(url_.server, {.timeout = kPatience}, clock_));
  info_ = TRY(Ask());
  TRY_STATUS(Aim(TRY_CONTEXT(FindTarget(), flags_.model),
                 info_.max_batch > 0 ? std::optional(info_.max_batch) : std::nullopt, flags_));
  prepare_s_ = Seconds(clock_.Now() - begin);
  return {};
}

Result<infer::ModelInfo> RemoteBackend::Ask() {
  const auto questions = TRY(oip::MakeClient(
      url_.server, {.headers = {fmt::format("{}: true", oip::kLabelsHeader)}, .timeout = kPatience}, clock_));
  auto info = questions->Info(served_as_, url_.version);
  if (info || info.error().code != ErrorCode::kNotFound) return info;
  if (flags_.payload == "tensor") return Context(url_.server, info.error());
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("{}: {}; --payload {} needs a weir server whose model has a recipe: --payload tensor "
                  "does without",
                  url_.server, info.error().message, flags_.payload));
}

Result<dataset::Recipe> RemoteBackend::FindRecipe() const {
  if (!flags_.recipe.empty()) return dataset::ReadRecipe(flags_.recipe);
  const std::string told = Told("recipe");
  if (told.empty())
    return Invalid("the server tells no recipe: say with --recipe FILE how pictures become the input");
  return TRY_CONTEXT(dataset::ParseRecipe(told, ""), "the recipe that the server tells");
}

Result<std::vector<std::string>> RemoteBackend::FindLabels(const dataset::Recipe& recipe) const {
  if (!flags_.recipe.empty() && !recipe.labels.empty()) return dataset::ReadLabels(recipe.labels);
  return Lines(Told("labels"));
}

Result<run::Target> RemoteBackend::FindTarget() const {
  dataset::Recipe recipe = TRY(FindRecipe());
  std::vector<std::string> labels = TRY(FindLabels(recipe));
  if (flags_.payload != "tensor") {  // the server's own recipe does the rest
    recipe.input.clear();
    recipe.layout = dataset::Layout::kNhwc;
    recipe.datatype = dataset::ElementType::kUint8;
  }
  if (flags_.payload != "image") {
    const Status fits = model::CheckFits(recipe, {info_.inputs, info_.outputs});
    if (!fits) return Context("the recipe", fits.error());
  }
  run::Target target = TRY(MakeTarget({served_as_, info_.inputs, info_.outputs}, recipe, std::move(labels)));
  target.version = url_.version;
  if (flags_.payload == "image") target.form = run::Form::kFile;
  const infer::Shape& shape = target.input.shape;
  if (!shape.empty() && shape.front() > 0) target.fixed_batch = static_cast<int>(shape.front());
  return target;
}

std::string RemoteBackend::Title() const {
  const std::string engine = Told("engine"), precision = Told("precision_in_force");
  return fmt::format("at {}{}{}{}{}", url_.server, engine.empty() ? "" : ", " + EscapeBytes(engine),
                     precision.empty() ? "" : ", " + EscapeBytes(precision), ", payload ", flags_.payload);
}

void RemoteBackend::Describe(Json& result) const {
  result["server"] = url_.server;
  result["payload"] = flags_.payload;
  if (!info_.platform.empty()) result["platform"] = EscapeBytes(info_.platform);
  if (const std::string engine = Told("engine"); !engine.empty()) result["engine"] = EscapeBytes(engine);
  if (const std::string precision = Told("precision_in_force"); !precision.empty())
    result["precision"] = EscapeBytes(precision);
  if (!times_) return;
  result["server_ms"] = {{"queue", times_->queue_ms},
                         {"compute_input", times_->compute_input_ms},
                         {"compute_infer", times_->compute_infer_ms},
                         {"compute_output", times_->compute_output_ms}};
  result["server_requests"] = times_->requests;
  result["server_mean_batch"] = times_->rows_per_batch;
}

// Statistics are an extension that a server may lack; the run does not depend on them.
std::optional<infer::PhaseTotals> RemoteBackend::Statistics() {
  auto statistics = client_->Statistics(served_as_, url_.version);
  return statistics ? std::optional(*statistics) : std::nullopt;
}

void RemoteBackend::End() {
  const auto after = Statistics();
  // A server that was loaded anew meanwhile counts from 0.
  if (before_ && after && after->success.count > before_->success.count)
    times_ = ServerTimesOf(*after - *before_);
}

// All of this process is the application's; what the server's machine does is not seen from here.
void RemoteBackend::Attribute(double cpu_s, monitor::Resources& resources, run::Costs& costs) const {
  costs.remote = true;
  costs.other_cpu_s = std::max(0.0, cpu_s - costs.load_cpu_s);
  resources.server_cpu.reset();
  resources.recogniser_cpu.reset();
}

std::string RemoteBackend::ServerLine(const run::Report& report) const {
  if (!times_) return "";
  const ServerTimes& t = *times_;
  std::string line = fmt::format("queue {}, input {}, infer {}, output {} ms a request, in batches of {}",
                                 Short(t.queue_ms), Short(t.compute_input_ms), Short(t.compute_infer_ms),
                                 Short(t.compute_output_ms), Short(t.rows_per_batch));
  if (report.batches > 0) {
    line += fmt::format("; the round trip takes {} ms",
                        Short(1e3 * report.costs.round_trip_s / static_cast<double>(report.batches)));
  }
  return line;
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenRemoteRecogniser(const RunFlags& flags, const Clock& clock) {
  TRY_STATUS(RefuseLocalFlags(flags));
  auto recogniser = std::make_unique<RemoteBackend>(flags, clock);
  TRY_STATUS(recogniser->Open());
  return recogniser;
}

}  // namespace weir::cli
