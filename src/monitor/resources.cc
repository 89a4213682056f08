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

Tally::Options TallyOptions(const ResourceMonitor::Options& options, const SnapshotReader& reader) {
  return {.watch = options.processes.empty() ? Tally::Watch::kThisProcess : Tally::Watch::kOthers,
          .from = options.started ? Tally::From::kBirth : Tally::From::kStart,
          .in_container = reader.in_container(),
          .cpus = std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1),
          .period = options.period};
}

SnapshotReader::Options ReaderOptions(const ResourceMonitor::Options& options) {
  if (options.processes.empty()) {
    return {.roots = {::getpid()}, .scope = SnapshotReader::Scope::kEngineApart, .peaks = options.peaks};
  }
  return {.roots = options.processes, .peaks = options.peaks};
}

// An instance of a divided card has an identifier that NVML's cards have not: what these tell is of the whole
// card, or of another one.
bool HasAnyOf(const GpuReader& gpus, const std::vector<std::string>& uuids) {
  return uuids.empty() || std::ranges::any_of(gpus.devices(), [&](const auto& device) {
           return std::ranges::find(uuids, device.uuid) != uuids.end();
         });
}

std::shared_ptr<const GpuReader> ReaderOfGpus(const ResourceMonitor::Options& options) {
  if (options.device_busy) return nullptr;
  std::shared_ptr<const GpuReader> gpus = options.gpus;
  if (!gpus && !options.nvml_library.empty()) {
    if (auto opened = GpuReader::Open(options.nvml_library)) gpus = *std::move(opened);
  }
  return gpus && HasAnyOf(*gpus, options.gpu_uuids) ? gpus : nullptr;
}

// The places of the GPUs that count among those of the reader. CUDA counts in another order than NVML.
std::vector<size_t> ChosenOf(const GpuReader* gpus, const std::vector<std::string>& uuids) {
  std::vector<size_t> all, chosen;
  for (size_t i = 0; gpus != nullptr && i < gpus->devices().size(); ++i) {
    all.push_back(i);
    if (std::ranges::find(uuids, gpus->devices()[i].uuid) != uuids.end()) chosen.push_back(i);
  }
  return chosen.empty() ? all : chosen;
}

std::vector<std::string> NamesOf(const GpuReader* gpus, const std::vector<size_t>& chosen) {
  std::vector<std::string> names;
  for (const size_t i : chosen) names.push_back(gpus->devices()[i].name);
  return names;
}

// Something that is read every so often, at the first sample and at the last.
class Turns {
 public:
  explicit Turns(Duration period) : period_(period) {}

  bool IsDue(Instant now) {
    if (next_ && now < *next_) return false;
    next_ = now + period_;
    return true;
  }

 private:
  Duration period_;
  std::optional<Instant> next_;
};

}  // namespace

struct ResourceMonitor::State {
  // `gpus` are opened before, so that the time that takes is not part of what is watched.
  State(const Clock& clock, const Options& options, std::shared_ptr<const GpuReader> opened)
      : clock(clock),
        period(options.period),
        gpu_period(std::max(options.gpu_period, options.period)),
        watches_itself(options.processes.empty()),
        device_busy(options.device_busy),
        device_label(options.device_label),
        gpu_events(options.gpu_events),
        event_busy(options.period / 2),
        gpus(std::move(opened)),
        server_page(options.server_page),
        gpu_turns(gpu_period),
        chosen(ChosenOf(gpus.get(), options.gpu_uuids)),
        gpu_tally(NamesOf(gpus.get(), chosen), gpu_period),
        page_turns(options.metrics_period),
        server_tally(options.metrics_period),
        reader(ReaderOptions(options)),
        tally(TallyOptions(options, reader), options.started.value_or(clock.Now())) {}

  enum class Turn { kUsual, kLast };
  void Sample(Turn turn = Turn::kUsual);
  void AskServer(Instant now);
  void AddGpus(Instant now);
  void Loop();
  Resources Sum() const;

  const Clock& clock;
  const Duration period, gpu_period;
  const bool watches_itself;
  const std::function<Duration()> device_busy;
  const std::string device_label;
  const std::function<Duration()> gpu_events;
  Counter event_busy;  // seconds; of the thread's
  const std::shared_ptr<const GpuReader> gpus;
  const std::function<Result<std::string>()> server_page;

  // These are the thread's until it is joined.
  Turns gpu_turns;
  const std::vector<size_t> chosen;  // of the reader's devices
  GpuTally gpu_tally;
  Turns page_turns;
  ServerTally server_tally;
  SnapshotReader reader;
  Tally tally;

  Mutex mutex;
  CondVar changed;
  bool has_begun GUARDED_BY(mutex) = false;
  bool stopping GUARDED_BY(mutex) = false;
  std::jthread thread;
};

void ResourceMonitor::State::Sample(Turn turn) {
  const Instant now = clock.Now();
  Snapshot snapshot = reader.Read(now);
  if (device_busy) snapshot.device_busy = device_busy();
  for (ProcessUse& use : snapshot.processes) {
    if (watches_itself && use.pid == ::getpid()) use.cpu = ProcessCpuTime();  // without the ticks of 10 ms
  }
  if (gpu_events) event_busy.Add(now, Seconds(gpu_events()));
  if (gpus && (gpu_turns.IsDue(now) || turn == Turn::kLast)) AddGpus(now);
  if (server_page && (page_turns.IsDue(now) || turn == Turn::kLast)) AskServer(now);
  snapshot.observer = ThreadCpuTime();
  tally.Add(snapshot);
}

void ResourceMonitor::State::AddGpus(Instant now) {
  const std::vector<GpuSample> all = gpus->Read();
  std::vector<GpuSample> samples;
  for (const size_t i : chosen) samples.push_back(all[i]);
  gpu_tally.Add(now, samples);
}

void ResourceMonitor::State::AskServer(Instant now) {
  const Result<std::string> page = server_page();
  server_tally.Add(now, page ? ReadServerMetrics(*page) : std::unexpected(page.error()));
}

Resources ResourceMonitor::State::Sum() const {
  Resources sum = tally.Sum();
  if (sum.gpu_percent) sum.gpu_label = device_label;
  if (const auto busy = event_busy.PerSecond()) {
    const auto percent = [](double share) { return 100 * std::min(share, 1.0); };
    sum.gpu_event_busy_percent = Range{percent(busy->mean), percent(busy->max), percent(busy->min)};
  }
  if (server_page) sum.server_metrics = server_tally.Sum();
  const auto used = gpu_tally.Together();
  if (!used) return sum;
  sum.gpu_label = used->name;
  sum.gpu_driver = gpus->driver();
  sum.gpu_percent = used->percent;
  sum.gpu_memory_bytes = used->memory_bytes;
  sum.gpu_power_watts = used->power_watts;
  sum.gpu_energy_j = used->energy_j;
  sum.gpu_clock_mhz = used->clock_mhz;
  sum.gpu_throttled = used->throttled;
  sum.gpu_activities = used->activities;
  sum.gpu_samples = used->samples;
  sum.gpu_period_ms = Milliseconds(gpu_period);
  if (chosen.size() > 1) {
    sum.gpus = gpu_tally.Each();
    for (size_t i = 0; i < sum.gpus.size(); ++i) sum.gpus[i].uuid = gpus->devices()[chosen[i]].uuid;
  }
  return sum;
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
  Sample(Turn::kLast);
}

Result<std::unique_ptr<ResourceMonitor>> ResourceMonitor::Start(const Clock& clock, Options options) {
  if (std::min({options.period, options.gpu_period, options.metrics_period}) < 1ms) {
    return Fail(ErrorCode::kInvalidArgument, "monitor: the period must be at least 1 ms");
  }
  for (const int pid : options.processes) {
    if (!ReadSmall(fmt::format("/proc/{}/stat", pid))) {
      return Fail(ErrorCode::kNotFound, fmt::format("monitor: there is no process {}", pid));
    }
  }
  std::unique_ptr<ResourceMonitor> monitor(
      new ResourceMonitor(std::make_unique<State>(clock, options, ReaderOfGpus(options))));
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
  return state_->Sum();
}

}  // namespace weir::monitor
