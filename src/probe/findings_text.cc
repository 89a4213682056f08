#include "probe/findings_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace weir::probe {
namespace {

std::string Mark(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "ok  ";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "WARN";
  }
  return "";
}

std::string FindingLines(const TextStyle& style, const Finding& finding) {
  std::string text = fmt::format("{}  {:<17} {}\n", style.Bold(Mark(finding.severity)),
                                 ToString(finding.kind), EscapeBytes(finding.what));
  if (finding.severity == Severity::kOk) return text;
  if (!finding.meaning.empty()) text += fmt::format("{:24}it means: {}\n", "", finding.meaning);
  if (!finding.remedy.empty()) text += fmt::format("{:24}do: {}\n", "", finding.remedy);
  return text;
}

int64_t CountOf(const std::vector<Finding>& findings, Severity severity) {
  return std::ranges::count(findings, severity, &Finding::severity);
}

}  // namespace

std::string FindingsText(const TextStyle& style, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += FindingLines(style, finding);
  return text + fmt::format("{} would spoil a measurement, {} to be known when reading one\n",
                            CountOf(findings, Severity::kWarning), CountOf(findings, Severity::kNote));
}

results::DoctorResult MakeDoctorResult(const std::vector<Finding>& findings) {
  results::DoctorResult result{
      .findings = {}, .warnings = CountOf(findings, Severity::kWarning), .provenance = {}};
  for (const Finding& finding : findings) {
    result.findings.push_back({.kind = std::string(ToString(finding.kind)),
                               .severity = std::string(ToString(finding.severity)),
                               .what = finding.what,
                               .meaning = finding.meaning,
                               .remedy = finding.remedy});
  }
  return result;
}

}  // namespace weir::probe
