#include "probe/storage_etl.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "probe/storage_originals.h"

namespace weir::probe {
namespace {

Result<EtlRun> PrepareOnce(const StorageOptions& options, const std::vector<StorageSample>& samples,
                           const std::string& folder, const PrepareOriginals& prepare, const Clock& clock,
                           const std::stop_token& stop) {
  ReadOptions read = options.read;
  for (const StorageSample& sample : samples)
    read.most_bytes = std::max<size_t>(read.most_bytes, sample.bytes);
  const auto originals = std::make_shared<Originals>(samples, read, options.timeout, clock);
  TRY_STATUS(originals->Start(options.threads));
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock, {.nvml_library = ""}));
  EtlRun run;
  auto figures = prepare(
      std::ssize(samples), [originals](int64_t index) { return originals->Read(index); }, folder, stop);
  run.reads = originals->Finish();
  run.machine = MachineUseOf(monitor->Stop(), static_cast<int>(std::thread::hardware_concurrency()));
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
    report.runs.push_back(TRY(PrepareOnce(
        options, samples, fmt::format("{}/{}", folder, PreparedName(repeat)), prepare, clock, stop)));
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
  return std::ranges::any_of(report.runs, [](const EtlRun& run) { return !run.reads.hung.empty(); });
}

}  // namespace weir::probe
