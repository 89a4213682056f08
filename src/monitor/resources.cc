#include "monitor/resources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "monitor/tally.h"

namespace weir::monitor {
namespace {

void PutRange(Json& json, const char* key, const std::optional<Range>& range) {
  if (range) json[key] = Json{{"mean", range->mean}, {"max", range->max}, {"min", range->min}};
}

Tally::Options TallyOptions(const ResourceMonitor::Options& options, const SnapshotReader& reader) {
  return {.watch = options.processes.empty() ? Tally::Watch::kThisProcess : Tally::Watch::kOthers,
          .from = options.started ? Tally::From::kBirth : Tally::From::kStart,
          .in_container = reader.in_container(),
          .cpus = std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1),
          .period = options.period};
}

SnapshotReader::Options ReaderOptions(const ResourceMonitor::Options& options) {
  if (options.processes.empty()) return {.roots = {::getpid()}, .scope = SnapshotReader::Scope::kEngineApart};
  return {.roots = options.processes};
}

}  // namespace

Json Resources::ToJson() const {
  Json json = Json::object();
  PutRange(json, "server_cpu", server_cpu);
  PutRange(json, "recogniser_cpu", recogniser_cpu);
  PutRange(json, "client_cpu", client_cpu);
  PutRange(json, "app_cpu", app_cpu);
  PutRange(json, "gpu_percent", gpu_percent);
  if (!gpu_label.empty()) json["gpu_label"] = gpu_label;
  PutRange(json, "host_memory_bytes", host_memory_bytes);
  PutRange(json, "container_memory_bytes", container_memory_bytes);
  PutRange(json, "process_memory_bytes", process_memory_bytes);
  PutIfAny(json, "read_bytes", read_bytes);
  PutIfAny(json, "written_bytes", written_bytes);
  PutIfAny(json, "received_bytes", received_bytes);
  PutIfAny(json, "sent_bytes", sent_bytes);
  PutIfAny(json, "steal_percent", steal_percent);
  PutIfAny(json, "throttled_s", throttled_s);
  PutIfAny(json, "cpu_pressure_percent", cpu_pressure_percent);
  PutIfAny(json, "memory_pressure_percent", memory_pressure_percent);
  PutIfAny(json, "io_pressure_percent", io_pressure_percent);
  json["observer_cpu"] = observer_cpu;
  json["wall_s"] = wall_s;
  json["samples"] = samples;
  json["period_ms"] = period_ms;
  return json;
}

struct ResourceMonitor::State {
  State(const Clock& clock, const Options& options)
      : clock(clock),
        period(options.period),
        watches_itself(options.processes.empty()),
        device_busy(options.device_busy),
        device_label(options.device_label),
        reader(ReaderOptions(options)),
        tally(TallyOptions(options, reader), options.started.value_or(clock.Now())) {}

  void Sample();
  void Loop();

  const Clock& clock;
  const Duration period;
  const bool watches_itself;
  const std::function<Duration()> device_busy;
  const std::string device_label;
  SnapshotReader reader;  // this and the tally: the thread's until it is joined
  Tally tally;

  Mutex mutex;
  CondVar changed;
  bool has_begun GUARDED_BY(mutex) = false;
  bool stopping GUARDED_BY(mutex) = false;
  std::jthread thread;
};

void ResourceMonitor::State::Sample() {
  Snapshot snapshot = reader.Read(clock.Now());
  snapshot.observer = ThreadCpuTime();
  if (device_busy) snapshot.device_busy = device_busy();
  for (ProcessUse& use : snapshot.processes) {
    if (watches_itself && use.pid == ::getpid()) use.cpu = ProcessCpuTime();  // without the ticks of 10 ms
  }
  tally.Add(snapshot);
}

void ResourceMonitor::State::Loop() {
  Sample();
  Instant next = clock.Now() + period;
  while (true) {
    {
      MutexLock lock(mutex);
      if (!has_begun) {
        has_begun = true;
        changed.NotifyAll();
      }
      while (!stopping && clock.Now() < next) changed.WaitUntil(mutex, next);
      if (stopping) break;
    }
    Sample();
    while (next <= clock.Now()) next += period;  // a sample that came late is not made up for
  }
  Sample();
}

Result<std::unique_ptr<ResourceMonitor>> ResourceMonitor::Start(const Clock& clock, Options options) {
  if (options.period < 1ms) {
    return Fail(ErrorCode::kInvalidArgument, "monitor: the period must be at least 1 ms");
  }
  for (const int pid : options.processes) {
    if (!ReadSmall(fmt::format("/proc/{}/stat", pid))) {
      return Fail(ErrorCode::kNotFound, fmt::format("monitor: there is no process {}", pid));
    }
  }
  std::unique_ptr<ResourceMonitor> monitor(new ResourceMonitor(std::make_unique<State>(clock, options)));
  State* state = monitor->state_.get();
  state->thread = StartThread("monitor", [state](std::stop_token) { state->Loop(); });
  MutexLock lock(state->mutex);
  while (!state->has_begun) state->changed.Wait(state->mutex);
  return monitor;
}

ResourceMonitor::ResourceMonitor(std::unique_ptr<State> state) : state_(std::move(state)) {}

ResourceMonitor::~ResourceMonitor() { Stop(); }

Resources ResourceMonitor::Stop() {
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.NotifyAll();
  }
  if (state_->thread.joinable()) state_->thread.join();
  Resources sum = state_->tally.Sum();
  if (sum.gpu_percent) sum.gpu_label = state_->device_label;
  return sum;
}

}  // namespace weir::monitor
