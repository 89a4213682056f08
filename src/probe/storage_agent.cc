#include "probe/storage_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/fields.h"
#include "base/json.h"
#include "dataset/hash.h"
#include "probe/storage_host_part.h"
#include "probe/storage_owner.h"

namespace weir::probe {
namespace {

constexpr int kMostRepeats = 1000;

struct TaskForm {
  int accelerators = 1, repeat = 0, hosts = 0;
  bool as_fast = false;
  int64_t begin_ns = 0;
};

template <typename F>
void Describe(F& fields, Described<F, TaskForm>& form) {
  fields("accelerators", form.accelerators);
  fields("repeat", form.repeat);
  fields("hosts", form.hosts);
  fields("as_fast", form.as_fast);
  fields("begin_ns", form.begin_ns);
}

struct SetForm {
  std::string hash;
  uint64_t samples = 0, bytes = 0, unwritten_bytes = 0, unknown_files = 0;
  std::optional<double> ceiling;
};

template <typename F>
void Describe(F& fields, Described<F, SetForm>& form) {
  fields("hash", form.hash);
  fields("samples", form.samples);
  fields("bytes", form.bytes);
  fields("unwritten_bytes", form.unwritten_bytes);
  fields("unknown_files", form.unknown_files);
  fields("ceiling", form.ceiling);
}

Seed SeedOf(const HostsPlan& plan) { return Seed(plan.options.seed); }

// A hash over names below `folder` and sizes.
std::string HashOfSet(const std::vector<StorageSample>& samples, const std::string& folder) {
  dataset::StreamHash hash;
  for (const StorageSample& sample : samples) {
    std::string_view name = sample.path;
    if (name.starts_with(folder)) name.remove_prefix(folder.size());
    const std::string line = fmt::format("{}\n{} {}\n", name, sample.offset, sample.bytes);
    hash.Add(std::as_bytes(std::span(line)));
  }
  return hash.Digest();
}

std::vector<StorageSample> InMemory(const HostsPlan& plan) {
  std::vector<StorageSample> samples;
  for (const uint64_t bytes : MakeSizes(plan.made, SeedOf(plan)))
    samples.push_back({.path = SampleName(std::ssize(samples)), .bytes = bytes});
  return samples;
}

StorageOptions AsFast(StorageOptions options, Duration limit) {
  options.profile.step = Duration{};
  options.steps = (int64_t{1} << 40) / std::max(1, options.profile.batch);
  options.limit = std::min(options.limit, limit);
  options.share = {};
  return options;
}

}  // namespace

template <typename F>
void Describe(F& fields, Described<F, SpaceThere>& space) {
  fields("bytes", space.bytes);
  fields("free_bytes", space.free_bytes);
  fields("foreign", space.foreign);
}

Json SpaceThere::ToJson() const {
  SpaceThere escaped = *this;
  for (std::string& folder : escaped.foreign) folder = EscapeBytes(folder);
  return FieldsToJson(escaped);
}

Result<SpaceThere> SpaceThere::FromJson(const Json& json) {
  SpaceThere there = TRY(FieldsFromJson<SpaceThere>(json));
  for (std::string& folder : there.foreign) folder = TRY(UnescapeBytes(folder));
  return there;
}

Json SetThere::ToJson() const {
  return FieldsToJson(SetForm{.hash = hash,
                              .samples = facts.samples,
                              .bytes = facts.bytes,
                              .unwritten_bytes = facts.unwritten_bytes,
                              .unknown_files = facts.unknown_files,
                              .ceiling = ceiling_samples_per_s});
}

Result<SetThere> SetThere::FromJson(const Json& json) {
  SetForm form = TRY(FieldsFromJson<SetForm>(json));
  return SetThere{.hash = std::move(form.hash),
                  .facts = {.bytes = form.bytes,
                            .samples = form.samples,
                            .unwritten_bytes = form.unwritten_bytes,
                            .unknown_files = form.unknown_files},
                  .ceiling_samples_per_s = form.ceiling};
}

Json HostTask::ToJson() const {
  return FieldsToJson(TaskForm{.accelerators = accelerators,
                               .repeat = repeat,
                               .hosts = hosts,
                               .as_fast = as_fast,
                               .begin_ns = begin.time_since_epoch().count()});
}

Result<HostTask> HostTask::FromJson(const Json& json) {
  const TaskForm form = TRY(FieldsFromJson<TaskForm>(json));
  if (form.accelerators < 1 || form.hosts < 1 || form.repeat < 0 || form.repeat > kMostRepeats)
    return Fail(ErrorCode::kCorrupt, "a run wants at least one accelerator and one host");
  return HostTask{.accelerators = form.accelerators,
                  .repeat = form.repeat,
                  .hosts = form.hosts,
                  .as_fast = form.as_fast,
                  .begin = Instant(Duration(form.begin_ns))};
}

void ClusterBarrier::Start(Passed passed) {
  cost_ns_ = {};
  context_.OnStep([this, passed = std::move(passed)](const cluster::PassedStep& step) {
    cost_ns_.Add(step.cost.count());
    over_ = over_ || step.last;
    passed(step.step, step.at, step.last);
  });
}

// A lost connection shows as the stop of the call.
void ClusterBarrier::Arrive(int64_t step, bool last) {
  next_ = step + 1;
  (void)context_.Arrive(step, last);
}

void ClusterBarrier::Finish() { context_.OnStep({}); }

void ClusterBarrier::Leave() {
  if (!over_) (void)context_.Arrive(next_, true);
}

Result<cluster::Message> StorageAgent::Space(const HostsPlan& plan, const cluster::CallContext& context) {
  SpaceThere there;
  there.foreign = RemoveOrphans(plan.path, ReadHostIdentity()).foreign;
  if (context.rank() == 0) {
    const SetNeeds needs = TRY(CheckSpace(plan.path, plan.made, SeedOf(plan)));
    there.bytes = needs.bytes;
    there.free_bytes = needs.space.free_bytes;
  }
  return cluster::Message{.body = there.ToJson(), .block = ""};
}

Result<cluster::Message> StorageAgent::Make(const HostsPlan& plan, const cluster::CallContext& context) {
  if (context.rank() != 0) return cluster::Message();
  made_.reset();
  made_.emplace(TRY(MadeSet::Make(plan.path, plan.made, SeedOf(plan), clock_, context.stop())));
  return cluster::Message{.body = {{kSetFolder, EscapeBytes(made_->folder())}}, .block = ""};
}

Result<cluster::Message> StorageAgent::Open(HostsPlan plan, const cluster::Message& request,
                                            const cluster::CallContext& context) {
  opened_ = false;
  plan_ = std::move(plan);
  std::string folder = plan_.set;
  if (plan_.writes()) folder = TRY(UnescapeBytes(TRY(GetString(request.body, kSetFolder))));
  samples_ = folder.empty() ? InMemory(plan_) : TRY(ListSamples(folder));
  if (plan_.record_bytes > 0) samples_ = TRY(DivideIntoRecords(samples_, plan_.record_bytes));
  SetFacts facts{.samples = samples_.size()};
  if (plan_.from_memory()) {
    for (const StorageSample& sample : samples_) facts.bytes += sample.bytes;
  } else {
    facts = InspectSet(samples_);
    if (plan_.options.read.cold) ForgetSet(samples_);
  }
  const SetThere there{
      .hash = HashOfSet(samples_, folder),
      .facts = facts,
      .ceiling_samples_per_s = TRY(MeasureCeiling(plan_.options, samples_, clock_, context.stop()))};
  opened_ = true;
  return cluster::Message{.body = there.ToJson(), .block = ""};
}

Result<cluster::Message> StorageAgent::Play(const cluster::Message& request, cluster::CallContext& context) {
  if (!opened_) return Fail(ErrorCode::kInvalidArgument, "no set was opened before");
  const HostTask task = TRY(HostTask::FromJson(request.body));
  if (task.hosts > context.world() || task.accelerators > plan_.options.most_accelerators)
    return Fail(ErrorCode::kInvalidArgument, "a run of more hosts or accelerators than there are");
  TRY_STATUS(cluster::CheckBegin(task.begin, clock_.Now()));
  if (context.rank() >= task.hosts) return cluster::Message();
  constexpr Duration kLongestOfRate = 3s;
  StorageOptions options = task.as_fast ? AsFast(plan_.options, kLongestOfRate) : plan_.options;
  const auto barrier = std::make_shared<ClusterBarrier>(context);
  options.share = {.rank = context.rank(),
                   .world = task.hosts,
                   .barrier = task.as_fast ? nullptr : barrier,
                   .begin = task.begin};
  auto run = PlayTraining(options, task.accelerators, task.repeat, samples_, clock_, context.stop());
  if (!task.as_fast) barrier->Leave();
  if (!run) return std::unexpected(run.error());
  const Instant ended = run->train.ended;
  return ToMessage({.run = *std::move(run), .barrier_ns = barrier->cost_ns(), .ended = ended});
}

cluster::Message StorageAgent::Drop() {
  opened_ = false;
  made_.reset();
  return {};
}

}  // namespace weir::probe
