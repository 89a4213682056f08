#include "watch/watched_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <sstream>
#include <utility>

#include "base/count.h"
#include "dataset/preparer.h"
#include "infer/device.h"
#include "infer/endpoint.h"
#include "infer/runner.h"
#include "model/fit.h"
#include "model/model.h"
#include "oip/client.h"
#include "watch/picture_input.h"

namespace weir::watch {
namespace {

constexpr int kRemoteInFlight = 8;
constexpr int kUsualBatch = 8;  // of an accelerator
constexpr std::chrono::seconds kServerPatience{10};

}  // namespace

struct WatchedModel::Backend {
  model::OpenedSession opened;
  std::unique_ptr<infer::Service> service;
};

WatchedModel::WatchedModel()
    : busy_(std::make_shared<std::atomic<Duration::rep>>(0)), backend_(std::make_unique<Backend>()) {}
WatchedModel::~WatchedModel() = default;

Result<std::unique_ptr<WatchedModel>> WatchedModel::Open(const ModelOptions& options, const Clock& clock) {
  std::unique_ptr<WatchedModel> opened(new WatchedModel);
  TRY_STATUS(oip::IsModelUrl(options.model) ? opened->OpenRemote(options, clock)
                                            : opened->OpenLocal(options, clock));
  return opened;
}

// Completes both kinds: one input, of the shape of the recipe.
Status WatchedModel::Complete(std::vector<infer::TensorInfo> inputs) {
  const auto fail = [&](const std::string& words) {
    return Fail(ErrorCode::kUnsupported, fmt::format("model {}: {}", name_, words));
  };
  if (const Status fits = CheckRecipe(recipe_); !fits) return fail(fits.error().message);
  const auto input = recipe_.input.empty()
                         ? inputs.begin()
                         : std::ranges::find(inputs, recipe_.input, &infer::TensorInfo::name);
  if (inputs.size() != 1 || input == inputs.end()) return fail("it has several inputs; frames are one");
  input_ = *input;
  output_ = recipe_.output.empty() && outputs_.size() == 1 ? outputs_.front().name : recipe_.output;
  return {};
}

Status WatchedModel::OpenLocal(const ModelOptions& options, const Clock& clock) {
  const model::Model m = TRY(model::OpenModel(options.model, {.recipe = options.recipe}));
  name_ = m.name;
  if (!m.recipe)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("model {} does not say how frames become its input: put {}, or give --recipe", name_,
                    m.folder.empty() ? name_ + ".recipe.yaml beside it" : "recipe.yaml into its folder"));
  if (m.fixed_batch.value_or(1) != 1)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("model {} has a fixed batch of {}: export it with a batch of 1, or a free one",
                            name_, *m.fixed_batch));
  recipe_ = *m.recipe;
  outputs_ = m.outputs;
  labels_ = m.labels;
  TRY_STATUS(Complete(m.inputs));
  infer::SessionOptions session = model::SessionDefaults(m);
  if (options.threads > 0) session.threads = options.threads;
  if (options.streams > 0) session.streams = options.streams;
  if (!options.precision.empty()) session.precision = options.precision;
  if (!options.device.empty()) session.devices = TRY_CONTEXT(infer::ParseDevices(options.device), "--device");
  if (m.fixed_batch) session.batch = 1;
  const int most = m.fixed_batch ? 1 : options.batch > 0 ? options.batch : kUsualBatch;
  session.batches = infer::WarmBatches(most);
  backend_->opened = TRY(model::OpenSession(m, options.engine, session, clock));
  const infer::Session& opened = *backend_->opened.session;
  on_cpu_ = opened.threads() > 0;
  emulated_ = opened.invents_answers();
  streams_ = opened.streams();
  int batch = options.batch > 0 ? options.batch : (on_cpu_ ? 1 : kUsualBatch);
  if (m.max_batch) batch = std::min(batch, std::max(1, *m.max_batch));
  if (m.fixed_batch) batch = 1;
  capacity_ = opened.callers() * batch;
  infer::Runner::Options runner{.max_queue = capacity_ + 64};
  runner.batching.max_batch = batch > 1 ? batch : 0;
  backend_->service = TRY(infer::Runner::Create(backend_->opened.session, clock, runner));
  engine_ = fmt::format("{} {}, {}, {} in {}, batches up to {}", backend_->opened.engine->name(),
                        backend_->opened.engine->version(), opened.precision(),
                        Count(opened.threads(), "thread"), Count(streams_, "stream"), batch);
  return {};
}

Status WatchedModel::OpenRemote(const ModelOptions& options, const Clock& clock) {
  if (!options.engine.empty() || !options.precision.empty() || !options.device.empty() ||
      options.threads > 0 || options.streams > 0 || options.batch > 0)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--engine, --device, --precision, --threads, --engine-streams and --batch are the "
                    "server's to say: {} is a URL",
                    options.model));
  const oip::ModelUrl url = TRY(oip::ParseModelUrl(options.model));
  name_ = url.model;
  version_ = url.version;
  const auto questions =
      TRY(oip::MakeClient(url.server, {.headers = {"weir-labels: true"}, .timeout = kServerPatience}, clock));
  const infer::ModelInfo info = TRY_CONTEXT(questions->Info(url.model, url.version), url.server);
  const auto told = [&](const char* key) {
    const auto found = info.parameters.find(key);
    return found == info.parameters.end() ? std::string() : found->second;
  };
  if (!options.recipe.empty()) {
    recipe_ = TRY(dataset::ReadRecipe(options.recipe));
  } else if (told("recipe").empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} tells no recipe: give --recipe FILE", options.model));
  } else {
    recipe_ = TRY_CONTEXT(dataset::ParseRecipe(told("recipe"), ""), "the recipe that the server tells");
  }
  if (const Status fits = model::CheckFits(recipe_, {info.inputs, info.outputs}); !fits)
    return Context("the recipe", fits.error());
  std::istringstream lines(told("labels"));
  for (std::string line; std::getline(lines, line);) labels_.push_back(line);
  outputs_ = info.outputs;
  TRY_STATUS(Complete(info.inputs));
  emulated_ = told("engine").starts_with("emulated");
  capacity_ = kRemoteInFlight;
  engine_ = fmt::format("{}{}{}", url.server, told("engine").empty() ? "" : ", ", told("engine"));
  backend_->service = TRY(oip::MakeClient(url.server, {.timeout = kServerPatience}, clock));
  return {};
}

Status WatchedModel::WarmUp(const Clock& clock) {
  std::promise<Status> answered;
  auto result = answered.get_future();
  Submit(Bytes::Allocate(dataset::InputBytes(recipe_, *recipe_.geometry.OutputSize())), clock.Now() + 10min,
         [&](Result<infer::Response> response, const infer::Times&) {
           answered.set_value(response ? Status() : Status(std::unexpected(response.error())));
         });
  const Status warm = result.get();
  busy_->store(0);
  if (!warm) return Context(fmt::format("model {}: its first frame", name_), warm.error());
  return {};
}

void WatchedModel::Submit(Bytes item, std::optional<Instant> deadline, infer::Completion::Function done) {
  infer::Call call;
  call.request.model = name_;
  call.request.version = version_;
  call.request.deadline = deadline;
  const dataset::Size size = *recipe_.geometry.OutputSize();
  const int64_t channels = recipe_.geometry.channel_count();
  infer::Tensor tensor{.name = input_.name, .dtype = input_.dtype, .data = std::move(item)};
  tensor.shape = recipe_.layout == dataset::Layout::kNchw
                     ? infer::Shape{1, channels, size.height, size.width}
                     : infer::Shape{1, size.height, size.width, channels};
  call.request.inputs.push_back(std::move(tensor));
  call.completion =
      infer::Completion([busy = busy_, done = std::move(done)](Result<infer::Response> response,
                                                               const infer::Times& times) mutable {
        if (response && times.started && times.done)
          busy->fetch_add((*times.done - *times.started).count() /
                          std::max<int64_t>(1, response->executed_batch));
        done(std::move(response), times);
      });
  backend_->service->Submit(std::move(call));
}

}  // namespace weir::watch
