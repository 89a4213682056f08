#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "probe/host_probe.h"
#include "record/provenance.h"
#include "results/check_results.h"

namespace weir::cli {
namespace {

std::string Mark(probe::Severity severity) {
  switch (severity) {
    case probe::Severity::kOk:
      return "ok  ";
    case probe::Severity::kNote:
      return "note";
    case probe::Severity::kWarning:
      return "WARN";
  }
  return "";
}

std::string FindingLines(const Console& console, const probe::Finding& finding) {
  std::string text = fmt::format("{}  {:<17} {}\n", console.Bold(Mark(finding.severity)),
                                 ToString(finding.kind), EscapeBytes(finding.what));
  if (finding.severity == probe::Severity::kOk) return text;
  if (!finding.meaning.empty()) text += fmt::format("{:24}it means: {}\n", "", finding.meaning);
  if (!finding.remedy.empty()) text += fmt::format("{:24}do: {}\n", "", finding.remedy);
  return text;
}

}  // namespace

int Doctor(const Arguments& arguments) {
  std::string json;
  bool strict = false;
  probe::HostProbeOptions options;
  Flags flags(
      "doctor",
      "Says what is on this machine, what would spoil a measurement on it, and what to do about that.",
      "weir doctor");
  flags.Text("--folder", options.folder, "whose disk is told of");
  flags.Switch("--strict", strict, "exit with 1 when anything would spoil a measurement");
  flags.Text("--json", json, "write the findings as JSON to this file; - for standard output");
  if (const auto status = flags.Parse(arguments)) return *status;
  const Console console(json);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  if (!std::filesystem::is_directory(options.folder)) {
    return FailWith({ErrorCode::kNotFound, fmt::format("--folder {}: no such folder", options.folder)});
  }
  const SteadyClock clock;
  const std::vector<probe::Finding> findings = probe::ProbeHost(clock, options);
  const auto count = [&](probe::Severity severity) {
    return std::ranges::count(findings, severity, &probe::Finding::severity);
  };
  const auto warnings = count(probe::Severity::kWarning);
  std::string text;
  for (const probe::Finding& finding : findings) text += FindingLines(console, finding);
  text += fmt::format("{} would spoil a measurement, {} to be known when reading one\n", warnings,
                      count(probe::Severity::kNote));
  console.Text(text);
  results::DoctorResult result{.findings = {},
                               .warnings = warnings,
                               .provenance = record::CollectProvenance({.command = CommandLine()}).ToJson()};
  for (const probe::Finding& finding : findings) {
    result.findings.push_back({.kind = std::string(ToString(finding.kind)),
                               .severity = std::string(ToString(finding.severity)),
                               .what = finding.what,
                               .meaning = finding.meaning,
                               .remedy = finding.remedy});
  }
  if (const Status written = console.Json(result.ToJson()); !written) return FailWith(written.error());
  return strict && warnings > 0 ? kJobFailed : kDone;
}

}  // namespace weir::cli
