#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "probe/findings_text.h"
#include "probe/host_probe.h"
#include "record/provenance.h"
#include "results/check_results.h"

namespace weir::cli {
int Doctor(const Arguments& arguments) {
  std::string json;
  bool strict = false;
  probe::HostProbeOptions options;
  Flags flags("doctor",
              "Reports what is on this machine, what would spoil a measurement on it, and what to do.",
              "weir doctor");
  flags.Text("--folder", options.folder, "folder whose disk is examined");
  flags.Switch("--strict", strict, "exit with status 1 if anything would spoil a measurement");
  flags.Text("--json", json, "write the findings as JSON to this file; - for standard output");
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(json);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  if (!std::filesystem::is_directory(options.folder)) {
    return FailWith({ErrorCode::kNotFound, fmt::format("--folder {}: no such folder", options.folder)});
  }
  const SteadyClock clock;
  const std::vector<probe::Finding> findings = probe::ProbeHost(clock, options);
  console.Text(probe::FindingsText(console.style(), findings));
  results::DoctorResult result = probe::MakeDoctorResult(findings);
  result.provenance = record::CollectProvenance({.command = CommandLine()}).ToJson();
  if (const Status written = console.Json(result.ToJson()); !written) return FailWith(written.error());
  return strict && result.warnings > 0 ? kJobFailed : kDone;
}

}  // namespace weir::cli
