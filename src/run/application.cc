#include "run/application.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>
#include <variant>

#include "base/thread.h"
#include "dataset/set.h"
#include "monitor/proc.h"
#include "run/assembly.h"
#include "run/encoded.h"
#include "run/inbox.h"

namespace weir::run {
namespace {

struct LoadCosts {
  Duration elapsed{};  // between taking up a picture and having it
  Duration cpu{};      // of it, running
  Duration delayed{};  // of it, ready to run but without a core
};

// Time this thread was ready to run and had no core, so far; the second number of the kernel's schedstat.
Duration RunDelay() {
  std::FILE* file = std::fopen("/proc/thread-self/schedstat", "re");
  if (!file) return {};
  long long running = 0, delayed = 0;
  const int got = std::fscanf(file, "%lld %lld", &running, &delayed);
  std::fclose(file);
  return got == 2 ? Duration(delayed) : Duration{};
}

// Bytes that could be had without swapping; nothing where the kernel does not tell.
std::optional<uint64_t> AvailableMemory() {
  const auto memory = monitor::ParseMemoryInfo(monitor::ReadSmall("/proc/meminfo").value_or(""));
  return memory ? std::optional(static_cast<uint64_t>(memory->available_bytes)) : std::nullopt;
}

}  // namespace

Status CheckListing(const dataset::Listing& listing, const Target& target) {
  if (target.form == Form::kTensor) return CheckGeometry(listing, target.recipe.geometry);
  for (const auto& set : listing.sets) {
    if (!set->facts().geometry && set->facts().format != dataset::SetFormat::kRaw) continue;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("set {} is prepared already, and the server would prepare its pictures again: send "
                    "their pixels (--payload pixels), or the original pictures",
                    set->folder()));
  }
  return {};
}

class Application::Flow {
 public:
  Flow(infer::Service& service, const Target& target, const dataset::Listing& listing, const Clock& clock,
       Options options)
      : service_(service),
        target_(target),
        listing_(listing),
        clock_(clock),
        options_(std::move(options)),
        item_bytes_(target.form == Form::kFile
                        ? 0
                        : dataset::InputBytes(target.recipe, *target.recipe.geometry.OutputSize())),
        assembly_(clock, AssemblyOptions()) {}

  Status MakeReady();
  Report Run(AnswerSink& sink, const std::function<void(const Progress&)>& progress);
  void Stop();

 private:
  // Pictures of one batch, loaded before the clock started.
  struct Loaded {
    std::vector<BatchPtr> batches;
    std::vector<Rejected> rejects;
  };
  int64_t Inputs() const { return std::ssize(listing_.inputs); }
  int64_t Total() const { return Inputs() * options_.repeat_data; }
  const dataset::Input& InputAt(int64_t index) const {
    return listing_.inputs[static_cast<size_t>(index % Inputs())];
  }
  Assembly::Options AssemblyOptions() const;

  Status WarmUp();
  Result<Loaded> LoadBefore();
  void LoadUntilEnd(Assembly& assembly, const std::function<void()>& send_due,
                    const std::function<void(Rejected)>& reject);
  image::Accepted<void> LoadOne(Loader& loader, Assembly& assembly, int64_t index, Stamps& stamps);
  std::vector<std::jthread> StartLoaders(Assembly& assembly, std::function<void()> send_due,
                                         std::function<void(Rejected)> reject, std::function<void()> done);
  void Feed(const Loaded& loaded);
  int64_t ItemsFor(size_t pictures) const {
    return target_.fixed_batch ? *target_.fixed_batch : static_cast<int64_t>(pictures);
  }
  infer::Request MakeRequest(infer::Tensor input) const;
  infer::Tensor PixelsTensor(const Bytes& buffer, int64_t items) const;
  uint64_t BytesToHold() const;
  void SubmitDue();
  void Submit(BatchPtr batch);
  void SubmitAlone(BatchPtr batch, size_t slot);

  int64_t Take(BatchDone done, Reporter& reporter, Report& report);
  image::Accepted<std::vector<Answer>> Judge(const BatchDone& done, size_t slot) const;
  Reporter::Outcome Conclude(const BatchDone& done, size_t slot);
  void CountBatch(const BatchDone& done, Report& report) const;
  void AddCosts(Report& report);

  infer::Service& service_;
  const Target& target_;
  const dataset::Listing& listing_;
  const Clock& clock_;
  const Options options_;
  const size_t item_bytes_;
  Assembly assembly_;
  Inbox inbox_;
  std::atomic<bool> stopped_ = false;
  std::atomic<int64_t> fed_ = 0;  // pictures the feeder has passed on

  Mutex mutex_;
  LoadCosts load_costs_ GUARDED_BY(mutex_);
  std::optional<Instant> first_submit_ GUARDED_BY(mutex_);

  // Used by the thread that calls MakeReady and Run, which ranks and reports.
  Duration warm_up_{}, load_before_{};
  Loaded loaded_;
  std::vector<BatchPtr> to_release_;  // sync: kept until printed, so that nothing overlaps
  Instant last_answer_;
};

Assembly::Options Application::Flow::AssemblyOptions() const {
  const bool sync = options_.mode == Mode::kSync;
  return {.pictures = Total(),
          .batch = options_.batch,
          .item_bytes = options_.no_files ? 0 : item_bytes_,
          .buffers = sync ? 1 : options_.in_flight + 2,
          .in_flight = sync ? 1 : options_.in_flight,
          .make_memory = target_.make_memory};
}

infer::Request Application::Flow::MakeRequest(infer::Tensor input) const {
  infer::Request request{.model = target_.model, .version = target_.version, .outputs = {target_.output}};
  request.inputs.push_back(std::move(input));
  return request;
}

infer::Tensor Application::Flow::PixelsTensor(const Bytes& buffer, int64_t items) const {
  const dataset::Size size = *target_.recipe.geometry.OutputSize();
  const int64_t channels = target_.recipe.geometry.channel_count();
  infer::Tensor tensor{.name = target_.input.name, .dtype = target_.input.dtype};
  tensor.shape = target_.recipe.layout == dataset::Layout::kNchw
                     ? infer::Shape{items, channels, size.height, size.width}
                     : infer::Shape{items, size.height, size.width, channels};
  tensor.data = buffer.Slice(0, item_bytes_ * static_cast<size_t>(items));
  return tensor;
}

// One batch at the size of the run, of zeros or of black pictures, answered before the clock starts.
Status Application::Flow::WarmUp() {
  infer::Call call;
  if (target_.form == Form::kFile) {
    const Bytes black = BlackPicture(*target_.recipe.geometry.OutputSize());
    call.request = MakeRequest(JoinFiles(target_.input.name, std::span(&black, 1), options_.batch));
  } else {
    const Bytes zeros = Bytes::Allocate(item_bytes_ * static_cast<size_t>(options_.batch));
    call.request = MakeRequest(PixelsTensor(zeros, options_.batch));
  }
  call.completion = infer::Completion([this](Result<infer::Response> response, const infer::Times& times) {
    inbox_.Push(BatchDone{nullptr, {}, std::move(response), times, clock_.Now()});
  });
  service_.Submit(std::move(call));
  const Event event = inbox_.Pop();
  const auto& response = std::get<BatchDone>(event).response;
  if (!response) return Context("the warm-up batch", response.error());
  return {};
}

// Into its slot in the batch; where it is no input, the reason.
image::Accepted<void> Application::Flow::LoadOne(Loader& loader, Assembly& assembly, int64_t index,
                                                 Stamps& stamps) {
  Assembly::ClaimedSlot claimed;
  if (target_.form == Form::kFile) {
    auto file = dataset::LoadInput(listing_, InputAt(index), options_.loading.max_file_bytes);
    if (!file) return std::unexpected(std::move(file).error());
    if (file->empty()) return std::unexpected(image::Reject{image::RejectReason::kEmpty, "no bytes"});
    claimed = assembly.Claim(index);
    claimed.batch->files[claimed.slot] = *std::move(file);
  } else {
    const auto pixels = loader.Load(InputAt(index));
    if (!pixels) return std::unexpected(pixels.error());
    claimed = assembly.Claim(index);
    dataset::WriteInput(target_.recipe, *pixels, claimed.data);
  }
  stamps.ready = clock_.Now();
  assembly.Commit(claimed, stamps);
  return {};
}

void Application::Flow::LoadUntilEnd(Assembly& assembly, const std::function<void()>& send_due,
                                     const std::function<void(Rejected)>& reject) {
  Loader loader(listing_, target_.recipe.geometry, options_.loading);
  LoadCosts costs;
  const Duration cpu_before = ThreadCpuTime(), delay_before = RunDelay();
  while (const std::optional<int64_t> index = assembly.Next()) {
    Stamps stamps{.load_begin = clock_.Now()};
    if (auto loaded = LoadOne(loader, assembly, *index, stamps)) {
      costs.elapsed += stamps.ready - stamps.load_begin;
    } else {
      costs.elapsed += clock_.Now() - stamps.load_begin;
      reject({*index, std::move(loaded).error()});
      assembly.Reject();
    }
    send_due();
  }
  costs.cpu = ThreadCpuTime() - cpu_before;
  costs.delayed = RunDelay() - delay_before;
  MutexLock lock(mutex_);
  load_costs_.elapsed += costs.elapsed;
  load_costs_.cpu += costs.cpu;
  load_costs_.delayed += costs.delayed;
}

std::vector<std::jthread> Application::Flow::StartLoaders(Assembly& assembly, std::function<void()> send_due,
                                                          std::function<void(Rejected)> reject,
                                                          std::function<void()> done) {
  std::vector<std::jthread> loaders;
  for (int i = 0; i < options_.decode_threads; ++i) {
    loaders.push_back(StartThread(fmt::format("decode-{}", i), [=, this, &assembly](std::stop_token) {
      LoadUntilEnd(assembly, send_due, reject);
      done();
    }));
  }
  return loaders;
}

// Returns the bytes of all pictures once loaded.
uint64_t Application::Flow::BytesToHold() const {
  if (target_.form == Form::kTensor) return static_cast<uint64_t>(Inputs()) * item_bytes_;
  uint64_t sum = 0;
  for (const dataset::Input& input : listing_.inputs) {
    std::error_code unreadable;
    const uint64_t size = std::filesystem::file_size(input.name, unreadable);
    if (!unreadable) sum += size;
  }
  return sum;
}

Result<Application::Flow::Loaded> Application::Flow::LoadBefore() {
  const uint64_t needed = BytesToHold();
  const auto available = AvailableMemory();
  if (available && needed > *available / 10 * 8) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--no-files would hold {} pictures in memory, {:.1f} GB of the {:.1f} GB free: "
                    "give fewer pictures, or prepare them as raw",
                    Inputs(), static_cast<double>(needed) / 1e9, static_cast<double>(*available) / 1e9));
  }
  const int batches = static_cast<int>((Inputs() + options_.batch - 1) / options_.batch);
  Assembly assembly(clock_, {.pictures = Inputs(),
                             .batch = options_.batch,
                             .item_bytes = item_bytes_,
                             .buffers = std::max(batches, 1),
                             .in_flight = std::max(batches, 1),
                             .window = std::max<int64_t>(Inputs() + 1, 1),
                             .make_memory = target_.make_memory});
  Loaded loaded;
  Mutex mutex;
  {
    const auto collect = [&] {
      while (BatchPtr batch = assembly.TakeDue()) {
        MutexLock lock(mutex);
        loaded.batches.push_back(std::move(batch));
      }
      if (stopped_) assembly.Stop();
    };
    const auto reject = [&](Rejected rejected) {
      MutexLock lock(mutex);
      loaded.rejects.push_back(std::move(rejected));
    };
    StartLoaders(assembly, collect, reject, [] {});  // joined at the end of this statement
  }
  while (BatchPtr batch = assembly.TakeDue()) loaded.batches.push_back(std::move(batch));
  // Batches in the order of their first pictures, so that answers need not wait long for their turn.
  std::ranges::sort(loaded.batches, {}, [](const BatchPtr& b) { return b->slots.front().index; });
  MutexLock lock(mutex_);
  load_costs_ = {};
  return loaded;
}

void Application::Flow::Feed(const Loaded& loaded) {
  for (int pass = 0; pass < options_.repeat_data && !stopped_; ++pass) {
    const int64_t offset = pass * Inputs();
    for (const Rejected& rejected : loaded.rejects) {
      fed_ += 1;
      inbox_.Push(Rejected{offset + rejected.index, rejected.reject});
    }
    for (const BatchPtr& ready : loaded.batches) {
      BatchPtr batch = assembly_.Borrow();
      if (!batch) return;
      batch->buffer = ready->buffer;
      batch->files = ready->files;
      batch->slots = ready->slots;
      const Instant now = clock_.Now();
      for (Batch::Slot& slot : batch->slots) {
        slot.index += offset;
        slot.stamps = {.load_begin = now, .ready = now};
      }
      fed_ += std::ssize(batch->slots);
      assembly_.Push(std::move(batch));
      SubmitDue();
    }
  }
}

void Application::Flow::SubmitDue() {
  while (BatchPtr batch = assembly_.TakeDue()) Submit(std::move(batch));
}

void Application::Flow::Submit(BatchPtr batch) {
  const Instant now = clock_.Now();
  {
    MutexLock lock(mutex_);
    if (!first_submit_) first_submit_ = now;
  }
  for (Batch::Slot& slot : batch->slots) slot.stamps.send_begin = now;
  infer::Call call;
  const int64_t items = ItemsFor(batch->slots.size());
  call.request = MakeRequest(target_.form == Form::kFile ? JoinFiles(target_.input.name, batch->files, items)
                                                         : PixelsTensor(batch->buffer, items));
  call.times.sent = now;
  call.completion = infer::Completion(
      [this, batch = std::move(batch)](Result<infer::Response> response, const infer::Times& times) mutable {
        const Instant answered = clock_.Now();
        assembly_.Answered();
        SubmitDue();
        inbox_.Push(BatchDone{
            std::move(batch), {}, std::move(response), times, answered});  // last: Run may return after it
      });
  service_.Submit(std::move(call));
}

// One file of a batch that was refused. It goes beside those that the Assembly counts as in flight: one for
// each such batch.
void Application::Flow::SubmitAlone(BatchPtr batch, size_t slot) {
  infer::Call call;
  call.request =
      MakeRequest(JoinFiles(target_.input.name, std::span(batch->files).subspan(slot, 1), ItemsFor(1)));
  call.completion =
      infer::Completion([this, slot, batch = std::move(batch)](Result<infer::Response> response,
                                                               const infer::Times& times) mutable {
        inbox_.Push(BatchDone{std::move(batch), slot, std::move(response), times, clock_.Now()});
      });
  service_.Submit(std::move(call));
}

Status Application::Flow::MakeReady() {
  TRY_STATUS(CheckListing(listing_, target_));
  const Instant begin = clock_.Now();
  TRY_STATUS(WarmUp());
  const Instant warm = clock_.Now();
  warm_up_ = warm - begin;
  if (options_.no_files) {
    loaded_ = TRY(LoadBefore());
    load_before_ = clock_.Now() - warm;
  }
  return {};
}

Report Application::Flow::Run(AnswerSink& sink, const std::function<void(const Progress&)>& progress) {
  Report report;
  Reporter reporter(listing_, clock_, sink, report);
  report.warm_up_s = Seconds(warm_up_);
  report.load_before_s = Seconds(load_before_);
  const Instant begin = clock_.Now();
  Instant next_progress = begin;
  std::vector<std::jthread> threads;
  const auto feed_done = [this] { inbox_.Push(FeedDone{}); };
  if (options_.no_files) {
    threads.push_back(StartThread("feed", [&, this](std::stop_token) {
      Feed(loaded_);
      feed_done();
    }));
  } else {
    threads = StartLoaders(
        assembly_, [this] { SubmitDue(); }, [this](Rejected rejected) { inbox_.Push(std::move(rejected)); },
        feed_done);
  }

  size_t feeding = threads.size();
  int64_t taken = 0;
  const auto begun = [&] { return options_.no_files ? fed_.load() : assembly_.Begun(); };
  while (feeding > 0 || taken < begun()) {
    Event event = inbox_.Pop();
    if (std::holds_alternative<FeedDone>(event)) {
      feeding -= 1;
    } else if (auto* rejected = std::get_if<Rejected>(&event)) {
      const Instant now = clock_.Now();
      const dataset::Input& input = InputAt(rejected->index);
      if (input.store >= 0 && rejected->reject.reason == image::RejectReason::kVanished &&
          report.store_failure.empty()) {
        report.store_failure = fmt::format("{}: {}", input.name, rejected->reject.detail);
        Stop();
      }
      reporter.Add(rejected->index,
                   {Stamps{.load_begin = now, .print_end = now}, std::move(rejected->reject)});
      taken += 1;
    } else {
      taken += Take(std::move(std::get<BatchDone>(event)), reporter, report);
    }
    assembly_.Finished(reporter.TellDue());
    for (BatchPtr& batch : std::exchange(to_release_, {})) assembly_.Release(std::move(batch));
    if (progress && clock_.Now() >= next_progress) {
      progress({.done = reporter.told(),
                .total = Total(),
                .rejected = report.rejected.total,
                .elapsed_s = Seconds(clock_.Now() - begin)});
      next_progress = clock_.Now() + 200ms;
    }
  }
  threads.clear();
  // Broken off in no_files: what comes after a picture that was not begun has waited for it in vain.
  reporter.TellRest();
  report.stopped = stopped_;
  report.total_s = Seconds(clock_.Now() - begin);
  AddCosts(report);
  return report;
}

void Application::Flow::AddCosts(Report& report) {
  MutexLock lock(mutex_);
  if (first_submit_) report.wall_s = Seconds(last_answer_ - *first_submit_);
  Costs& costs = report.costs;
  costs.images = static_cast<double>(report.images);
  costs.wall_s = report.wall_s;
  costs.cores = CpuAllowance();
  costs.overlapped = options_.mode == Mode::kAsync;
  costs.in_flight = options_.mode == Mode::kSync ? 1 : options_.in_flight;
  costs.loaders = options_.no_files ? 0 : options_.decode_threads;
  costs.load_cpu_s = Seconds(load_costs_.cpu);
  costs.load_blocked_s =
      Seconds(std::max(Duration{}, load_costs_.elapsed - load_costs_.cpu - load_costs_.delayed));
  costs.load_s = Seconds(load_costs_.elapsed) / options_.decode_threads;
  costs.infer_s = costs.engine_busy_s;
  costs.send_s = std::max(0.0, costs.round_trip_s - costs.engine_busy_s);
  costs.held_back_s = Seconds(assembly_.HeldBack());
  costs.print_s = Seconds(report.stages.result_load + report.stages.print);
}

// The answer to a batch, or its failure, to the fates of its pictures; how many of them are sealed by it.
int64_t Application::Flow::Take(BatchDone done, Reporter& reporter, Report& report) {
  const size_t pictures = done.batch->slots.size();
  const bool refused = !done.response && done.response.error().code == ErrorCode::kInvalidArgument;
  if (target_.form == Form::kFile && refused && !done.alone && pictures > 1) {
    SubmitAlone(std::move(done.batch), 0);
    return 0;
  }
  if (!done.response && options_.lost && report.device_failure.empty()) {
    if (auto why = options_.lost()) {
      report.device_failure = *std::move(why);
      Stop();
    }
  }
  int64_t sealed = 1;
  if (done.alone) {
    const size_t slot = *done.alone;
    reporter.Add(done.batch->slots[slot].index, Conclude(done, slot));
    if (slot + 1 < pictures) {
      SubmitAlone(std::move(done.batch), slot + 1);
      return sealed;
    }
  } else {
    for (size_t slot = 0; slot < pictures; ++slot)
      reporter.Add(done.batch->slots[slot].index, Conclude(done, slot));
    CountBatch(done, report);
    sealed = static_cast<int64_t>(pictures);
  }
  if (options_.mode == Mode::kAsync) {
    assembly_.Release(std::move(done.batch));
  } else {
    to_release_.push_back(std::move(done.batch));
  }
  return sealed;
}

image::Accepted<std::vector<Answer>> Application::Flow::Judge(const BatchDone& done, size_t slot) const {
  if (!done.response) {
    const Error& error = done.response.error();
    return std::unexpected(target_.form == Form::kFile
                               ? RejectOfRefusal(error)
                               : image::Reject{image::RejectReason::kFailed, error.message});
  }
  const auto scores = std::ranges::find(done.response->outputs, target_.output, &infer::Tensor::name);
  if (scores == done.response->outputs.end()) {
    return std::unexpected(image::Reject{image::RejectReason::kFailed,
                                         fmt::format("the answer has no output {}", target_.output)});
  }
  const int64_t items = ItemsFor(done.alone ? 1 : done.batch->slots.size());
  auto answers =
      RankAnswers(*scores, items, done.alone ? 0 : static_cast<int64_t>(slot), target_.recipe, options_.top);
  if (answers) return *std::move(answers);
  return std::unexpected(image::Reject{image::RejectReason::kFailed, answers.error().message});
}

// The fate of one picture. Where the service tells nothing of its engine, all
// from the sending to the last byte of the answer is inference.
Reporter::Outcome Application::Flow::Conclude(const BatchDone& done, size_t slot) {
  const infer::Times& times = done.times;
  Stamps s = done.batch->slots[slot].stamps;
  s.sent = std::max(s.send_begin, times.queued.value_or(s.send_begin));
  s.infer_begin = std::max(s.sent, times.started.value_or(s.sent));
  s.infer_end = std::max(s.infer_begin, times.done.value_or(s.infer_begin));
  s.result_begin = std::max(s.infer_end, clock_.Now());
  s.device = times.device;
  Reporter::Outcome outcome;
  if (auto answers = Judge(done, slot)) {
    outcome.fate = *std::move(answers);
  } else {
    outcome.fate = std::move(answers).error();
  }
  s.result_end = clock_.Now();
  last_answer_ = s.result_end;
  outcome.stamps = s;
  return outcome;
}

void Application::Flow::CountBatch(const BatchDone& done, Report& report) const {
  const infer::Times& times = done.times;
  const Duration round_trip = done.answered - done.batch->slots.front().stamps.send_begin;
  if (times.started && times.done && times.queued) {
    report.batches += 1;
    report.costs.engine_busy_s += Seconds(*times.done - *times.started);
    report.costs.round_trip_s += Seconds(round_trip - (*times.started - *times.queued));
  } else if (times.done) {  // a server's: what its engine did is not told with the answer
    report.batches += 1;
    report.costs.round_trip_s += Seconds(round_trip);
  }
}

void Application::Flow::Stop() {
  stopped_ = true;
  assembly_.Stop();
  SubmitDue();
}

Application::Application(infer::Service& service, const Target& target, const dataset::Listing& listing,
                         const Clock& clock, Options options)
    : flow_(std::make_unique<Flow>(service, target, listing, clock, std::move(options))) {}
Application::~Application() = default;

Status Application::MakeReady() { return flow_->MakeReady(); }
Report Application::Run(AnswerSink& sink, const std::function<void(const Progress&)>& progress) {
  return flow_->Run(sink, progress);
}
void Application::Stop() { flow_->Stop(); }

}  // namespace weir::run
