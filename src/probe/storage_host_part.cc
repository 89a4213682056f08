#include "probe/storage_host_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/fields.h"
#include "base/json.h"
#include "probe/storage_phases.h"

namespace weir::probe {
namespace {

// The numbers of a HostTrain in JSON.
struct Form {
  int accelerators = 1;
  int64_t steps = 0, samples = 0, compute_ns = 0, wall_ns = 0, ended_ns = 0, set_samples = 0;
  uint64_t bytes = 0, read_bytes = 0, cached_bytes = 0, asked_bytes = 0;
  int64_t unknown_cache = 0, errors = 0;
  std::vector<std::string> first_errors, hung;
  std::vector<int64_t> stalls_ns;
  std::vector<std::pair<uint64_t, uint64_t>> epochs;
  std::vector<std::pair<int64_t, uint64_t>> order;
  double cores = 1, wall_s = 0;
  std::optional<double> foreign_cores, steal_percent, throttled_share, device_bytes, mount_bytes;
  bool cancelled = false;
};

template <typename F>
void Describe(F& fields, Described<F, Form>& form) {
  fields("accelerators", form.accelerators);
  fields("steps", form.steps);
  fields("samples", form.samples);
  fields("compute_ns", form.compute_ns);
  fields("wall_ns", form.wall_ns);
  fields("ended_ns", form.ended_ns);
  fields("set_samples", form.set_samples);
  fields("bytes", form.bytes);
  fields("read_bytes", form.read_bytes);
  fields("cached_bytes", form.cached_bytes);
  fields("asked_bytes", form.asked_bytes);
  fields("unknown_cache", form.unknown_cache);
  fields("errors", form.errors);
  fields("first_errors", form.first_errors);
  fields("hung", form.hung);
  fields("stalls_ns", form.stalls_ns);
  fields("epochs", form.epochs);
  fields("order", form.order);
  fields("cores", form.cores);
  fields("wall_s", form.wall_s);
  fields("foreign_cores", form.foreign_cores);
  fields("steal_percent", form.steal_percent);
  fields("throttled_share", form.throttled_share);
  fields("device_bytes", form.device_bytes);
  fields("mount_bytes", form.mount_bytes);
  fields("cancelled", form.cancelled);
  fields.Require(form.accelerators >= 1, "a run without accelerators");
  fields.Require(
      cluster::AreCounts(form.stalls_ns) &&
          cluster::AreCounts<int64_t>({form.steps, form.samples, form.compute_ns, form.wall_ns,
                                       form.set_samples, form.unknown_cache, form.errors}) &&
          cluster::AreCounts<uint64_t>({form.bytes, form.read_bytes, form.cached_bytes, form.asked_bytes}) &&
          form.ended_ns >= 0 && form.ended_ns < int64_t{1} << 62,
      "a count that is none");
  for (const auto& [samples, bytes] : form.epochs)
    fields.Require(cluster::AreCounts<uint64_t>({samples, bytes}), "an epoch with a count that is none");
  for (const auto& [samples, sum] : form.order)
    fields.Require(cluster::AreCounts<int64_t>({samples}), "an order with a count that is none");
}

template <typename S>
auto PartsOf(S& stalls) {
  return std::array{&stalls.queue,  &stalls.open,    &stalls.read, &stalls.close,
                    &stalls.decode, &stalls.augment, &stalls.hosts};
}

template <typename H, typename Part>
std::vector<H*> HistogramsOf(Part& part) {
  auto& train = part.run.train;
  std::vector<H*> all{&train.reads.open_ns,   &train.reads.read_ns,    &train.reads.close_ns,
                      &train.reads.decode_ns, &train.reads.augment_ns, &train.late_ns,
                      &part.barrier_ns};
  for (auto* histogram : PartsOf(train.stall_times)) all.push_back(histogram);
  return all;
}

}  // namespace

cluster::Message ToMessage(const HostTrain& part) {
  const TrainResult& train = part.run.train;
  const MachineUse& machine = part.run.machine;
  Form form{.accelerators = part.run.accelerators,
            .steps = train.steps,
            .samples = train.samples,
            .compute_ns = train.compute.count(),
            .wall_ns = train.wall.count(),
            .ended_ns = part.ended.time_since_epoch().count(),
            .set_samples = train.set_samples,
            .bytes = train.bytes,
            .read_bytes = train.reads.bytes,
            .cached_bytes = train.reads.cached_bytes,
            .asked_bytes = train.reads.asked_bytes,
            .unknown_cache = train.reads.unknown_cache,
            .errors = train.reads.errors,
            .first_errors = {},
            .hung = train.reads.hung,
            .stalls_ns = {},
            .epochs = train.epochs,
            .order = {},
            .cores = machine.cores,
            .wall_s = machine.wall_s,
            .foreign_cores = machine.foreign_cores,
            .steal_percent = machine.steal_percent,
            .throttled_share = machine.throttled_share,
            .device_bytes = machine.device_bytes,
            .mount_bytes = machine.mount_bytes,
            .cancelled = train.cancelled};
  for (const std::string& error : train.reads.first_errors) form.first_errors.push_back(EscapeBytes(error));
  for (const Duration* stall : PartsOf(train.stalls)) form.stalls_ns.push_back(stall->count());
  for (const EpochReads& epoch : train.order) form.order.emplace_back(epoch.samples, epoch.sum);
  cluster::Message message{.body = FieldsToJson(form), .block = ""};
  cluster::AppendHistograms(message.block, HistogramsOf<const stats::Histogram>(part));
  return message;
}

Result<HostTrain> HostTrainFrom(const cluster::Message& message) {
  Form form = TRY(FieldsFromJson<Form>(message.body));
  HostTrain part;
  TrainResult& train = part.run.train;
  const auto stalls = PartsOf(train.stalls);
  if (form.stalls_ns.size() != stalls.size())
    return Fail(ErrorCode::kCorrupt, "stalls_ns: another number of stages than this weir knows");
  for (size_t i = 0; i < stalls.size(); ++i) *stalls[i] = Duration(form.stalls_ns[i]);
  part.run.accelerators = form.accelerators;
  part.ended = Instant(Duration(form.ended_ns));
  train.steps = form.steps;
  train.samples = form.samples;
  train.compute = Duration(form.compute_ns);
  train.wall = Duration(form.wall_ns);
  train.set_samples = form.set_samples;
  train.bytes = form.bytes;
  train.epochs = std::move(form.epochs);
  for (const auto& [samples, sum] : form.order) train.order.push_back({.samples = samples, .sum = sum});
  train.reads.bytes = form.read_bytes;
  train.reads.cached_bytes = form.cached_bytes;
  train.reads.asked_bytes = form.asked_bytes;
  train.reads.unknown_cache = form.unknown_cache;
  train.reads.errors = form.errors;
  train.reads.first_errors = std::move(form.first_errors);
  train.reads.hung = std::move(form.hung);
  train.cancelled = form.cancelled;
  part.run.machine = {.cores = form.cores,
                      .wall_s = form.wall_s,
                      .foreign_cores = form.foreign_cores,
                      .steal_percent = form.steal_percent,
                      .throttled_share = form.throttled_share,
                      .device_bytes = form.device_bytes,
                      .mount_bytes = form.mount_bytes};
  std::string_view block = message.block;
  TRY_STATUS(cluster::TakeHistograms(block, HistogramsOf<stats::Histogram>(part)));
  return part;
}

namespace {

void AddTraining(const TrainResult& more, TrainResult& train) {
  train.steps = std::max(train.steps, more.steps);
  train.samples += more.samples;
  train.bytes += more.bytes;
  train.compute = std::max(train.compute, more.compute);
  train.wall = std::max(train.wall, more.wall);
  train.stalls.Add(more.stalls);
  train.stall_times.Merge(more.stall_times);
  train.reads.Merge(more.reads);
  train.late_ns.Merge(more.late_ns);
  train.cancelled = train.cancelled || more.cancelled;
  train.epochs.resize(std::max(train.epochs.size(), more.epochs.size()));
  for (size_t epoch = 0; epoch < more.epochs.size(); ++epoch) {
    train.epochs[epoch].first += more.epochs[epoch].first;
    train.epochs[epoch].second += more.epochs[epoch].second;
  }
  train.order.resize(std::max(train.order.size(), more.order.size()));
  for (size_t epoch = 0; epoch < more.order.size(); ++epoch) train.order[epoch].Merge(more.order[epoch]);
}

std::optional<double> SumOf(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

}  // namespace

TrainRun MergeTraining(const std::vector<HostTrain>& parts) {
  TrainRun sum = parts.front().run;
  for (size_t i = 1; i < parts.size(); ++i) {
    AddTraining(parts[i].run.train, sum.train);
    const MachineUse &here = sum.machine, &there = parts[i].run.machine;
    const auto device_bytes = SumOf(here.device_bytes, there.device_bytes);
    const auto mount_bytes = SumOf(here.mount_bytes, there.mount_bytes);
    sum.machine = Worse(here, there);
    sum.machine.device_bytes = device_bytes;
    sum.machine.mount_bytes = mount_bytes;
  }
  for (Duration* stall : PartsOf(sum.train.stalls)) *stall /= std::ssize(parts);
  return sum;
}

}  // namespace weir::probe
