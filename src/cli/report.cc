#include <optional>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "report/study_report.h"
#include "trial/study_folder.h"

namespace weir::cli {
namespace {

Result<int> WriteReport(const std::string& folder, const std::string& other_folder, const std::string& json) {
  const Console console(json);
  TRY_STATUS(console.CheckJson());
  const trial::StoredStudy stored = TRY(trial::ReadStoredStudy(folder));
  std::optional<trial::StoredStudy> other;
  if (!other_folder.empty()) other = TRY(trial::ReadStoredStudy(other_folder));
  const results::StudyResult result = TRY(trial::WriteReportOf(folder, stored, other ? &*other : nullptr));
  console.Text(report::AnswerText(result, folder));
  TRY_STATUS(console.Json(result.ToJson()));
  return kDone;
}

}  // namespace

int Report(const Arguments& arguments) {
  std::string folder, other, json;
  Flags flags("report", "Writes the report of a study, finished or not: what it found, and how sure that is.",
              "weir report quick");
  flags.Required("DIR", folder, "folder of a study");
  flags.Optional("DIR2", other,
                 "folder of another study to compare with: the same study on another day, host or build");
  flags.Text("--json", json, "write the result as JSON to this file; - for standard output");
  if (const auto status = flags.Parse(arguments)) return *status;
  const Result<int> status = WriteReport(folder, other, json);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
