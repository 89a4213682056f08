#include "probe/storage_etl.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/json.h"
#include "probe/mount_bytes.h"
#include "probe/storage_originals.h"
#include "probe/storage_watch.h"

namespace weir::probe {
namespace {

// Sets `hung_write` where a write did not end.
Result<EtlRun> PrepareOnce(const StorageOptions& options, const std::vector<StorageSample>& samples,
                           const std::string& folder, const PrepareOriginals& prepare, const Clock& clock,
                           const std::stop_token& stop, std::string& hung_write) {
  ReadOptions read = options.read;
  for (const StorageSample& sample : samples)
    read.most_bytes = std::max<size_t>(read.most_bytes, sample.bytes);
  const auto originals = std::make_shared<Originals>(samples, read, options.timeout, clock);
  TRY_STATUS(originals->Start(options.threads));
  const MountMeter mount = MountMeter::Of(samples);
  const auto before = mount.Read();
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock, {.nvml_library = ""}));
  // A read that hangs may hold the work for its timeout before a write is to blame.
  const Duration quiet = 2 * options.timeout;
  const Error hung{ErrorCode::kDeadline, fmt::format("nothing was written below {} for {:g} s",
                                                     EscapeBytes(folder), Seconds(quiet))};
  auto figures = RunWatched<EtlFigures>(
      [prepare, originals, folder, stop, count = std::ssize(samples), &clock](const Moved& moved) {
        return prepare(
            count, [originals](int64_t index) { return originals->Read(index); }, folder, stop,
            [&] { moved(clock.Now()); });
      },
      quiet, hung, clock);
  EtlRun run;
  const bool hangs = !figures && figures.error() == hung;
  run.reads = hangs ? originals->Tally() : originals->Finish();
  run.machine = MachineUseOf(monitor->Stop(), static_cast<int>(std::thread::hardware_concurrency()));
  run.machine.mount_bytes = mount.Since(before);
  if (hangs) {
    hung_write = hung.message;
    return run;
  }
  RemovePrepared(folder);
  run.figures = TRY(std::move(figures));
  return run;
}

}  // namespace

std::optional<double> EtlFigures::ImagesPerSecond() const {
  if (wall <= Duration{}) return std::nullopt;
  return static_cast<double>(images + rejected) / Seconds(wall);
}

Result<EtlReport> ProbeEtl(const StorageOptions& options, const std::vector<StorageSample>& samples,
                           const SetFacts& set, const std::string& folder, const PrepareOriginals& prepare,
                           const Clock& clock, const std::stop_token& stop) {
  EtlReport report{.set = set, .wants_cold = options.read.cold && !options.read.direct};
  for (int repeat = 0; repeat < options.repeats && !AnyHung(report); ++repeat) {
    report.runs.push_back(
        TRY(PrepareOnce(options, samples, fmt::format("{}/{}", folder, PreparedName(repeat)), prepare, clock,
                        stop, report.hung_write)));
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
  }
  return report;
}

StorageBottleneck EtlBottleneck(const std::vector<EtlRun>& runs) {
  EtlFigures sum;
  for (const EtlRun& run : runs) {
    sum.read += run.figures.read;
    sum.decode += run.figures.decode;
    sum.resize += run.figures.resize;
    sum.encode += run.figures.encode;
    sum.write += run.figures.write;
  }
  const std::pair<const char*, Duration> parts[] = {{"read", sum.read},
                                                    {"decode", sum.decode},
                                                    {"resize", sum.resize},
                                                    {"encode", sum.encode},
                                                    {"write", sum.write}};
  const Duration all = sum.read + sum.decode + sum.resize + sum.encode + sum.write;
  const auto& most = *std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
  return {most.first, all > Duration{} ? Seconds(most.second) / Seconds(all) : 0};
}

bool AnyHung(const EtlReport& report) {
  return !report.hung_write.empty() ||
         std::ranges::any_of(report.runs, [](const EtlRun& run) { return !run.reads.hung.empty(); });
}

}  // namespace weir::probe
