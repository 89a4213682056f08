#include "serve/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "serve/warm_up.h"

namespace weir::serve {
namespace {

using infer::DType;
using infer::TensorInfo;

// Calls that came one by one until dynamic batching counts as of no use.
constexpr int64_t kLoneCalls = 1000;

infer::QueuePolicy PolicyOf(const model::QueuePolicy& policy) {
  return {.max_queue = policy.max_queue_size,
          .default_timeout = policy.default_timeout,
          .allow_override = policy.allow_timeout_override,
          .on_timeout = policy.timeout_action == model::QueuePolicy::TimeoutAction::kDelay
                            ? infer::QueuePolicy::OnTimeout::kDelay
                            : infer::QueuePolicy::OnTimeout::kReject};
}

bool CanCombine(const model::Model& model) {
  return model.config.dynamic_batching && !model.fixed_batch && model.serving_max_batch > 1;
}

infer::Runner::Options RunnerOptions(const model::Model& model, int max_queue) {
  infer::Runner::Options options{.max_queue = max_queue};
  options.batching.max_batch = model.serving_max_batch;
  options.batching.combine = CanCombine(model);
  const auto& wanted = model.config.dynamic_batching;
  if (!wanted) return options;
  infer::Batching& batching = options.batching;
  batching.preferred = wanted->preferred_batch_sizes;
  batching.max_wait = wanted->max_queue_delay;
  batching.priority_levels = std::max(1, wanted->priority_levels);
  batching.default_priority = std::max(1, wanted->default_priority_level);
  if (wanted->default_queue_policy) batching.default_policy = PolicyOf(*wanted->default_queue_policy);
  for (const auto& [level, policy] : wanted->priority_queue_policy)
    batching.policies[level] = PolicyOf(policy);
  // Every priority has places of its own, as many as the configuration says, and never without a bound.
  int64_t total = 0;
  for (int level = 1; level <= batching.priority_levels; ++level) {
    infer::QueuePolicy& own = batching.policies.try_emplace(level, batching.default_policy).first->second;
    if (own.max_queue == 0) own.max_queue = max_queue;
    total += own.max_queue;
  }
  options.max_queue = static_cast<int>(std::min<int64_t>(total, 1'000'000));
  return options;
}

// A model as clients see it under one of its names.
struct Form {
  std::vector<TensorInfo> inputs, outputs;
};
std::optional<Form> FormOf(const model::Model& model, Payload payload, const IdentityBinding* identities) {
  if (payload == Payload::kTensor) return Form{model.client_inputs, model.client_outputs};
  if (payload == Payload::kLookup && identities == nullptr) return std::nullopt;
  if (payload == Payload::kLookup) return Form{{identities->input()}, identities->outputs()};
  if (payload == Payload::kIdentify) {
    if (identities == nullptr) return std::nullopt;
    auto form = FormOf(model, Payload::kImage, nullptr);
    if (!form) form = Form{model.inputs, {}};
    form->outputs = identities->outputs();
    return form;
  }
  const auto size = model.recipe ? model.recipe->geometry.OutputSize() : std::nullopt;
  if (!size || model.inputs.size() != 1 || model.inputs.front().shape.empty()) return std::nullopt;
  TensorInfo input{.name = model.inputs.front().name, .shape = {model.inputs.front().shape.front()}};
  if (model.serving_max_batch > 0) input.shape.front() = -1;
  if (payload == Payload::kPixels) {
    input.dtype = DType::kUint8;
    input.shape.insert(input.shape.end(),
                       {size->height, size->width, model.recipe->geometry.channel_count()});
  } else {
    input.dtype = DType::kBytes;
  }
  return Form{{std::move(input)}, model.client_outputs};
}

}  // namespace

std::string_view SuffixOf(Payload payload) {
  switch (payload) {
    case Payload::kTensor:
      return infer::SuffixOf(infer::Payload::kTensor);
    case Payload::kPixels:
      return infer::SuffixOf(infer::Payload::kPixels);
    case Payload::kImage:
      return infer::SuffixOf(infer::Payload::kImage);
    case Payload::kIdentify:
      return ".identify";
    case Payload::kLookup:
      return ".lookup";
  }
  return "";
}

std::string ServedModel::What() const { return fmt::format("model \"{}\"", name); }
std::string ServedModel::What(std::string_view kind, std::string_view tensor) const {
  return fmt::format("model \"{}\": {} \"{}\"", name, kind, tensor);
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::Create(Parts parts, const Clock& clock, Metrics& metrics) {
  CHECK(parts.session != nullptr);
  const infer::Runner::Options options = RunnerOptions(parts.model, parts.max_queue);
  std::unique_ptr<LoadedModel> loaded(new LoadedModel(std::move(parts)));
  TRY_STATUS(loaded->MakeServed(metrics));
  loaded->runner_ = TRY(infer::Runner::Create(loaded->parts_.session, clock, options));
  return loaded;
}

std::string LoadedModel::engine() const { return parts_.engine_spec.substr(0, parts_.engine_spec.find(':')); }

Status LoadedModel::MakeServed(Metrics& metrics) {
  const model::Model& m = parts_.model;
  for (const Payload payload : kPayloads) {
    std::optional<Form> form = FormOf(m, payload, parts_.identities.get());
    if (!form) continue;
    const bool pictures = payload == Payload::kPixels || payload == Payload::kImage ||
                          (payload == Payload::kIdentify && FormOf(m, Payload::kImage, nullptr));
    const std::string name = m.name + std::string(SuffixOf(payload));
    model::ServedForm told{
        .name = name,
        .inputs = form->inputs,
        .outputs = form->outputs,
        .max_batch = m.serving_max_batch,
        .instances = std::max(
            1, parts_.session->streams() / std::max(1, static_cast<int>(parts_.session->gpus().size()))),
        .gpus = parts_.session->gpus(),
        .engine = engine(),
        .parameters = {{"engine", parts_.engine_spec},
                       {"precision_in_force", parts_.session->precision()},
                       {"threads_in_force", fmt::format("{}", parts_.session->threads())}}};
    if (m.recipe) {
      dataset::Recipe recipe = *m.recipe;
      recipe.labels.clear();  // a path of this machine
      told.parameters["recipe"] = dataset::FormatRecipe(recipe);
    }
    model::EffectiveConfig config = TRY(model::MakeEffectiveConfig(m, told));
    ModelMetrics& own = metrics.OfModel(name, parts_.version);
    own.SetBatchingIdle(m.config.dynamic_batching && !CanCombine(m));
    served_[static_cast<size_t>(payload)].reset(new ServedModel{.loaded = *this,
                                                                .payload = payload,
                                                                .name = name,
                                                                .version = parts_.version,
                                                                .inputs = std::move(form->inputs),
                                                                .outputs = std::move(form->outputs),
                                                                .config = std::move(config),
                                                                .metrics = own,
                                                                .takes_pictures = pictures});
  }
  return {};
}

void LoadedModel::Submit(const std::vector<infer::Tensor>& inputs, std::function<void(Status)> done) {
  infer::Call call;
  call.request.inputs = inputs;
  call.completion =
      infer::Completion([done = std::move(done)](Result<infer::Response> response, const infer::Times&) {
        done(response ? Status{} : Status(std::unexpected(std::move(response).error())));
      });
  runner_->Submit(std::move(call));
}

Status LoadedModel::Run(const std::vector<infer::Tensor>& inputs) {
  std::promise<Status> answered;
  Submit(inputs, [&](Status status) { answered.set_value(std::move(status)); });
  return answered.get_future().get();
}

Status LoadedModel::WarmUp() {
  for (const WarmUpSample& sample : TRY(MakeWarmUpSamples(parts_.model))) {
    for (int i = 0; i < sample.count; ++i) {
      if (const Status ran = Run(sample.inputs); !ran) {
        return Context(sample.name.empty() ? "warm-up with a row of zeros"
                                           : fmt::format("model_warmup \"{}\"", sample.name),
                       ran.error());
      }
    }
    if (probe_.empty()) probe_ = sample.inputs;
  }
  return {};
}

void LoadedModel::NoteEngine(bool well) {
  if (!well) {
    failures_in_a_row_.fetch_add(1, std::memory_order_relaxed);
  } else if (failures_in_a_row_.load(std::memory_order_relaxed) != 0) {
    failures_in_a_row_.store(0, std::memory_order_relaxed);
  }
}

void LoadedModel::BeginProbe(std::function<void()> done) {
  if (probe_.empty() || probing_.exchange(true)) return;
  failures_in_a_row_.store(0, std::memory_order_relaxed);
  Submit(probe_, [this, done = std::move(done)](const Status& ran) {
    dead_ = !ran && (ran.error().code == ErrorCode::kInternal || ran.error().code == ErrorCode::kIo);
    probing_ = false;
    done();
  });
}

Status LoadedModel::CheckEngine(Instant now) const {
  if (const auto why = parts_.session->lost()) return Fail(ErrorCode::kOverloaded, *why);
  if (dead()) return Fail(ErrorCode::kOverloaded, "its engine fails every call");
  const auto hung = hang(now);
  if (!hung) return {};
  return Fail(ErrorCode::kOverloaded,
              fmt::format("its engine hangs: a batch has run for {:.0f} s, and {:.3g} s was expected at most",
                          Seconds(hung->running), Seconds(hung->expected)));
}

bool LoadedModel::NoteCall() {
  const int others = under_way_.fetch_add(1, std::memory_order_relaxed);
  if (!CanCombine(parts_.model) || lone_calls_.load(std::memory_order_relaxed) < 0) return false;
  if (others > 0) {
    lone_calls_.store(-1, std::memory_order_relaxed);  // they come together: no more counting
    return false;
  }
  return lone_calls_.fetch_add(1, std::memory_order_relaxed) + 1 == kLoneCalls;
}

}  // namespace weir::serve
