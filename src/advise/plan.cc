#include "advise/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/count.h"
#include "probe/storage_profile.h"

namespace weir::advise {
namespace {

using results::PlanResult;
using Estimate = PlanResult::Estimate;

constexpr double kBytesPerGbit = 1e9 / 8;

// One resource while its works are added up.
struct Pool {
  PlanResult::Resource result;
  std::string kind;             // that is counted and bought: accelerators and CPUs come as hosts
  Capacity share{1, 1, 1, {}};  // of a unit's equal share that each added one gives
  double busy = 0.8;
  std::vector<std::string> once;  // files with a single measurement

  Estimate Load() const {
    Estimate sum;
    for (const PlanResult::Work& work : result.works) {
      sum.value += work.units.value;
      sum.low += work.units.low;
      sum.high += work.units.high;
    }
    return sum;
  }
};

std::string NumberText(double value) { return Short(value); }

std::string CapacityText(const Capacity& capacity) {
  if (capacity.low == capacity.high) return NumberText(capacity.value);
  return fmt::format("{} ({} to {})", NumberText(capacity.value), NumberText(capacity.low),
                     NumberText(capacity.high));
}

// Returns the units of `capacity` that a demand keeps busy. A low capacity gives the high end.
Estimate Over(double demand, const Capacity& capacity) {
  const auto part = [demand](double unit) { return unit > 0 ? demand / unit : 0; };
  return {part(capacity.value), part(capacity.high), part(capacity.low > 0 ? capacity.low : capacity.value)};
}

void AddOnce(const std::string& text, std::vector<std::string>& list) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(text);
}

void AddWork(Pool& pool, const std::string& name, double demand, const std::string& demand_text,
             const char* unit, const Capacity& capacity) {
  const Estimate units = Over(demand, capacity);
  pool.result.works.push_back(
      {.name = name,
       .units = units,
       .arithmetic = fmt::format("{} = {} {}; one {} gives {}: {} / {} = {:.3g}", demand_text,
                                 NumberText(demand), unit, pool.kind, CapacityText(capacity),
                                 NumberText(demand), NumberText(capacity.value), units.value)});
  for (const std::string& file : capacity.files) {
    if (file.empty()) continue;
    AddOnce(file, pool.result.measured_from);
    if (capacity.once) AddOnce(file, pool.once);
  }
}

// Capacity of `count` units, in units, where each added one gives `share`.
double Together(int count, double share) { return 1 + (count - 1) * share; }

// The least count whose capacity is enough.
double CountFor(double load, double busy, double share) {
  constexpr double kRounding = 1e-9;
  const double wanted = load / busy;
  if (wanted <= 1) return 1;
  return std::ceil(1 + (wanted - 1) / std::max(share, 1e-3) - kRounding);
}

Estimate ScaleOf(const Pool& pool, int count) {
  const Estimate load = pool.Load();
  const auto scale = [&](double share, double part) {
    return part > 0 ? Together(count, share) * pool.busy / part : 0;
  };
  return {scale(pool.share.value, load.value), scale(pool.share.low, load.high),
          scale(pool.share.high, load.low)};
}

void Settle(Pool& pool, const std::optional<int>& owned) {
  PlanResult::Resource& r = pool.result;
  const Estimate load = pool.Load();
  r.needed = {CountFor(load.value, pool.busy, pool.share.value),
              CountFor(load.low, pool.busy, pool.share.high), CountFor(load.high, pool.busy, pool.share.low)};
  r.owned = owned.has_value();
  r.count = owned.value_or(static_cast<int>(r.needed.value));
  r.scale = ScaleOf(pool, r.count);
  r.busy_percent = 100 * load.value / Together(r.count, pool.share.value);
  r.arithmetic =
      fmt::format("{:.3g} busy at full load; at most {:.0f} % of each is used: {:.3g} / {:.2f} = {:.3g}",
                  load.value, 100 * pool.busy, load.value, pool.busy, load.value / pool.busy);
  if (pool.share.value != 1)
    r.arithmetic += fmt::format("; each added one gives {:.2f} of its share", pool.share.value);
  r.arithmetic += fmt::format("; needed {:.0f}", r.needed.value);
}

// Counts that are given must be enough at the low end of the measurements. Those that the plan counts are the
// answer, with their interval.
bool IsMet(const PlanResult::Resource& r) {
  constexpr double kRounding = 1e-9;
  return (r.owned ? r.scale.low : r.scale.value) >= 1 - kRounding;
}

Result<MeasuredDemand> DemandOf(const TrainingWork& training, const Profiles& profiles) {
  MeasuredDemand demand;
  if (const auto measured = profiles.demands.find(training.profile); measured != profiles.demands.end()) {
    demand = measured->second;
  } else if (!training.profile.empty()) {
    const auto published = probe::FindStorageProfile(training.profile);
    if (!published)
      return Fail(ErrorCode::kNotFound,
                  fmt::format("training {}: {}; nor is there a training result of that name", training.name,
                              published.error().message));
    demand = {probe::SamplesPerSecond(*published), published->sample_bytes};
  }
  demand.samples_per_s = training.samples_per_s.value_or(demand.samples_per_s);
  demand.sample_bytes = training.sample_bytes.value_or(demand.sample_bytes);
  return demand;
}

// Builds the plan's resources, one work after the other.
class Planner {
 public:
  Planner(const Workload& workload, const Profiles& profiles) : workload_(workload), profiles_(profiles) {
    for (Pool* pool : {&storage_, &links_, &hosts_}) pool->busy = workload.busy_percent / 100;
    accelerators_.busy = 1;  // a training uses an accelerator whole
    storage_.result.resource = storage_.kind = "storage";
    links_.result.resource = links_.kind = "link";
    hosts_.result.resource = hosts_.kind = accelerators_.kind = "host";
    accelerators_.result.resource = "accelerator";
    if (profiles.storage_share) storage_.share = *profiles.storage_share;
  }

  Result<PlanResult> Make() {
    for (const TrainingWork& training : workload_.training) TRY_STATUS(Add(training));
    for (const PreparationWork& preparation : workload_.preparation) TRY_STATUS(Add(preparation));
    for (const InferenceWork& inference : workload_.inference) TRY_STATUS(Add(inference));
    PlanResult plan{.name = workload_.name};
    std::vector<Pool*> pools;
    std::optional<int> hosts = workload_.hosts;
    if (!hosts) hosts = HostsNeeded();
    const std::pair<Pool*, const std::optional<int>*> all[] = {{&storage_, &workload_.storage},
                                                               {&links_, &workload_.links},
                                                               {&hosts_, &hosts},
                                                               {&accelerators_, &hosts}};
    for (const auto& [pool, count] : all) {
      if (pool->result.works.empty()) continue;
      Settle(*pool, *count);
      if (pool->kind == "host") pool->result.owned = workload_.hosts.has_value();
      pools.push_back(pool);
    }
    const Pool& least =
        **std::ranges::min_element(pools, {}, [](const Pool* pool) { return pool->result.scale.value; });
    plan.bottleneck = least.result.resource;
    plan.scale = least.result.scale;
    plan.met = std::ranges::all_of(pools, [](const Pool* pool) { return IsMet(pool->result); });
    for (const Pool* pool : pools) {
      const auto is_same = [&](const auto& doubling) { return doubling.resource == pool->kind; };
      if (std::ranges::none_of(plan.doubling, is_same))
        plan.doubling.push_back(Double(pools, pool->kind, plan.scale.value));
      plan.resources.push_back(pool->result);
    }
    plan.assumptions = Assumptions();
    return plan;
  }

 private:
  // Returns the hosts that the CPUs' works and the accelerators need.
  int HostsNeeded() const {
    double most = 1;
    for (const Pool* pool : {&hosts_, &accelerators_})
      most = std::max(most, CountFor(pool->Load().value, pool->busy, 1));
    return static_cast<int>(most);
  }

  static PlanResult::Doubling Double(const std::vector<Pool*>& pools, const std::string& kind,
                                     double before) {
    PlanResult::Doubling answer{.resource = kind};
    for (const Pool* pool : pools) {
      const int count = pool->result.count * (pool->kind == kind ? 2 : 1);
      const double scale = ScaleOf(*pool, count).value;
      if (answer.limited_by.empty() || scale < answer.scale) {
        answer.scale = scale;
        answer.limited_by = pool->result.resource;
      }
    }
    answer.gain = before > 0 ? answer.scale / before : 0;
    return answer;
  }

  Status Add(const TrainingWork& training) {
    const MeasuredDemand demand = TRY(DemandOf(training, profiles_));
    const double samples = training.accelerators * demand.samples_per_s;
    const std::string text = fmt::format("{} accelerators x {} samples/s", training.accelerators,
                                         NumberText(demand.samples_per_s));
    TRY_STATUS(AddReads("training " + training.name, samples, demand.sample_bytes, text));
    TRY_STATUS(AddTraffic("training " + training.name, samples * demand.sample_bytes,
                          fmt::format("{} x {} bytes", text, NumberText(demand.sample_bytes))));
    const double places = workload_.accelerators_per_host;
    AddWork(accelerators_, "training " + training.name, training.accelerators,
            fmt::format("{} accelerators", training.accelerators), "accelerators",
            {places, places, places, {}});
    if (profiles_.decoded_samples_per_s)
      AddWork(hosts_, "decoding for " + training.name, samples, text, "samples/s",
              *profiles_.decoded_samples_per_s);
    return {};
  }

  Status Add(const PreparationWork& preparation) {
    const double rate = preparation.images / (3600 * preparation.within_hours);
    const std::string text =
        fmt::format("{} images / {} h", NumberText(preparation.images), NumberText(preparation.within_hours));
    const std::string name = "preparation " + preparation.name;
    TRY_STATUS(AddReads(name, rate, preparation.image_bytes, text));
    TRY_STATUS(AddTraffic(name, rate * preparation.image_bytes,
                          fmt::format("{} x {} bytes", text, NumberText(preparation.image_bytes))));
    TRY_STATUS(AddWrites(name + ", written", rate, WrittenBytes(preparation), text));
    if (!profiles_.prepared_images_per_s) return Missing(name, "weir probe storage PATH --phase etl --json");
    AddWork(hosts_, name, rate, text, "images/s", *profiles_.prepared_images_per_s);
    return {};
  }

  Status Add(const InferenceWork& inference) {
    const double rate = inference.streams * inference.frames_per_s;
    const std::string text =
        fmt::format("{} streams x {} frames/s", inference.streams, NumberText(inference.frames_per_s));
    const std::string name = "inference " + inference.name;
    TRY_STATUS(AddTraffic(name, rate * inference.frame_bytes,
                          fmt::format("{} x {} bytes", text, NumberText(inference.frame_bytes))));
    const auto& models = profiles_.model_images_per_s;
    if (models.empty()) return Missing(name, "weir run MODEL DATA --json");
    auto model = models.find(inference.model);
    if (inference.model.empty() && models.size() == 1) model = models.begin();
    if (model == models.end()) {
      std::string known;
      for (const auto& [one, capacity] : models) known += (known.empty() ? "" : ", ") + one;
      return Fail(ErrorCode::kNotFound, fmt::format("{}: the profiles have no model \"{}\"; they have {}",
                                                    name, inference.model, known));
    }
    AddWork(hosts_, name, rate, text, "images/s", model->second);
    return {};
  }

  // Reads of whole samples. A unit is limited by samples/s and by bytes/s: the one that takes more of it
  // counts.
  Status AddReads(const std::string& name, double samples, double bytes, const std::string& text) {
    if (!profiles_.storage_samples_per_s) return Missing(name, "weir probe storage PATH --step-ms 0 --json");
    const Capacity& by_samples = *profiles_.storage_samples_per_s;
    const double measured_bytes = profiles_.storage_sample_bytes;
    if (measured_bytes > 0 && bytes > measured_bytes) {
      Capacity by_bytes = profiles_.storage_bytes_per_s.value_or(
          Capacity{by_samples.value * measured_bytes, by_samples.low * measured_bytes,
                   by_samples.high * measured_bytes, by_samples.files});
      if (samples * bytes / by_bytes.value > samples / by_samples.value) {
        AddWork(storage_, name, samples * bytes, fmt::format("{} x {} bytes", text, NumberText(bytes)),
                "bytes/s", by_bytes);
        return {};
      }
    }
    AddWork(storage_, name, samples, text, "samples/s", by_samples);
    return {};
  }

  // Bytes of a prepared image.
  double WrittenBytes(const PreparationWork& preparation) const {
    return preparation.written_bytes.value_or(preparation.image_bytes *
                                              profiles_.prepared_bytes_written.value_or(1));
  }

  // REQUIRES: AddReads of the same work.
  Status AddWrites(const std::string& name, double rate, double bytes, const std::string& text) {
    const std::string product = fmt::format("{} x {} bytes", text, NumberText(bytes));
    const Capacity& by_samples = *profiles_.storage_samples_per_s;
    const double size = profiles_.storage_sample_bytes;
    Capacity storage = profiles_.storage_bytes_per_s.value_or(by_samples);
    if (!profiles_.storage_bytes_per_s && size > 0)
      for (double* each : {&storage.value, &storage.low, &storage.high}) *each *= size;
    if (profiles_.storage_bytes_per_s || size > 0)
      AddWork(storage_, name, rate * bytes, product, "bytes/s", storage);
    return AddTraffic(name, rate * bytes, product);
  }

  Status AddTraffic(const std::string& name, double bytes_per_s, const std::string& text) {
    Capacity link;
    if (profiles_.link_gbit_per_s) {
      link = *profiles_.link_gbit_per_s;
    } else if (workload_.link_gbit_per_s) {
      link = {*workload_.link_gbit_per_s, *workload_.link_gbit_per_s, *workload_.link_gbit_per_s, {}};
    } else {
      return Missing(name, "weir probe network HOST:PORT --json");
    }
    for (double* rate : {&link.value, &link.low, &link.high}) *rate *= kBytesPerGbit;
    AddWork(links_, name, bytes_per_s, text, "bytes/s", link);
    return {};
  }

  // The notes name the profiles that were passed over, so they belong to the reason.
  std::unexpected<Error> Missing(const std::string& name, const char* command) const {
    std::string passed_over;
    for (const std::string& note : profiles_.notes) passed_over += fmt::format(" ({})", note);
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: no profile has the capacity that it needs{}; measure it with {} FILE", name,
                            passed_over, command));
  }

  std::vector<std::string> Assumptions() const {
    std::vector<std::string> all{
        "Works run at the same time, and each keeps a part of a unit busy in proportion to its rate."};
    if (!profiles_.storage_share)
      all.push_back("Each storage unit gives its equal share: no probe read several PATHs.");
    if (profiles_.storage_may_give_more)
      all.push_back("The storage fed all accelerators that the probe asked for, so a unit may give more.");
    if (!profiles_.link_gbit_per_s && workload_.link_gbit_per_s)
      all.push_back(fmt::format("A link gives {} Gbit/s, by the workload: no network was measured.",
                                NumberText(*workload_.link_gbit_per_s)));
    if (!workload_.training.empty() && !profiles_.decoded_samples_per_s)
      all.push_back("Training decodes nothing on the hosts: no probe ran with --decode.");
    if (!workload_.preparation.empty()) {
      all.push_back(
          "Storage takes written bytes as fast as it gives them, and a link carries what is read "
          "and written together: no write was measured.");
      const bool known = profiles_.prepared_bytes_written.has_value() ||
                         std::ranges::all_of(workload_.preparation, [](const PreparationWork& each) {
                           return each.written_bytes.has_value();
                         });
      if (!known)
        all.push_back(
            "A prepared image is as large as the one that is read: give written_bytes, or measure "
            "with weir probe storage PATH --phase etl.");
    }
    std::vector<std::string> once;
    for (const Pool* pool : {&storage_, &links_, &hosts_})
      for (const std::string& file : pool->once) AddOnce(file, once);
    for (const std::string& file : once)
      all.push_back(
          fmt::format("{} holds one measurement: its capacity has no interval, and may be off.", file));
    all.insert(all.end(), profiles_.notes.begin(), profiles_.notes.end());
    return all;
  }

  const Workload& workload_;
  const Profiles& profiles_;
  Pool storage_, links_, hosts_, accelerators_;
};

}  // namespace

Result<PlanResult> MakePlan(const Workload& workload, const Profiles& profiles) {
  return Planner(workload, profiles).Make();
}

namespace {

// Writes the needed and the given count in one row. Accelerators are counted in hosts.
std::string CountText(const PlanResult::Resource& r) {
  const std::string unit = r.resource == "accelerator" ? " hosts" : "";
  std::string text = fmt::format("needed {:.0f}{}", r.needed.value, unit);
  if (r.needed.low != r.needed.high) text += fmt::format(" ({:.0f} to {:.0f})", r.needed.low, r.needed.high);
  if (!r.owned) {
    if (r.count != static_cast<int>(r.needed.value))
      text += fmt::format(", {} counted for the accelerators or CPUs in them", r.count);
    return text + fmt::format("; {:.0f} % busy", r.busy_percent);
  }
  const char* const verdict = r.scale.value < 1 - 1e-9 ? "too few"
                              : IsMet(r)               ? "enough"
                                                       : "enough by the mean, too few at the low end";
  return text + fmt::format(", given {}: {}; {:.0f} % busy", r.count, verdict, r.busy_percent);
}

}  // namespace

std::string PlanText(const TextStyle& style, const PlanResult& plan) {
  std::string text = fmt::format("{} {}\n", style.Bold("plan"), plan.name);
  for (const PlanResult::Resource& r : plan.resources) {
    text += fmt::format("{} {}\n", style.Bold(r.resource), CountText(r));
    for (const PlanResult::Work& work : r.works)
      text += fmt::format("  {}: {}\n", work.name, work.arithmetic);
    text += fmt::format("  {}\n", r.arithmetic);
  }
  text += fmt::format("{} {}: the plan carries {:.2f} times the workload ({:.2f} to {:.2f})\n",
                      style.Bold("bottleneck"), plan.bottleneck, plan.scale.value, plan.scale.low,
                      plan.scale.high);
  for (const PlanResult::Doubling& doubling : plan.doubling)
    text += fmt::format("  twice the {}s: {:.2f} times the workload, a gain of {:.2f}; then limited by {}\n",
                        doubling.resource, doubling.scale, doubling.gain, doubling.limited_by);
  for (const std::string& assumption : plan.assumptions) text += fmt::format("  assumed: {}\n", assumption);
  return text;
}

}  // namespace weir::advise
