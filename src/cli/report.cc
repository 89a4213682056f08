#include <optional>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/study_folder.h"
#include "cli/verbs.h"

namespace weir::cli {
namespace {

Result<int> WriteReport(const std::string& folder, const std::string& other_folder, const std::string& json) {
  const Console console(json);
  TRY_STATUS(console.CheckJson());
  const StoredStudy stored = TRY(ReadStoredStudy(folder));
  std::optional<StoredStudy> other;
  if (!other_folder.empty()) other = TRY(ReadStoredStudy(other_folder));
  const results::StudyResult result = TRY(WriteReportOf(folder, stored, other ? &*other : nullptr));
  console.Text(AnswerText(result, folder));
  TRY_STATUS(console.Json(result.ToJson()));
  return kDone;
}

}  // namespace

int Report(const Arguments& arguments) {
  std::string folder, other, json;
  Flags flags("report",
              "Writes the report of a study, as far as it has come: what it found, and how sure that is.",
              "weir report quick");
  flags.Required("DIR", folder, "a study's folder");
  flags.Optional("DIR2", other,
                 "another study's, that it is set beside: the same on another day, host or build");
  flags.Text("--json", json, "write the result as JSON to this file; - for standard output");
  if (const auto status = flags.Parse(arguments)) return *status;
  const Result<int> status = WriteReport(folder, other, json);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
