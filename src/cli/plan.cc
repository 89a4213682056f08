#include "advise/plan.h"

#include "base/file.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

Result<int> RunPlan(const std::string& file, const std::string& folder, const std::string& json) {
  const Console console(json);
  TRY_STATUS(console.CheckJson());
  const advise::Workload workload = TRY_CONTEXT(advise::ParseWorkload(TRY(ReadTextFile(file))), file);
  results::PlanResult plan = TRY(advise::MakePlan(workload, TRY(advise::ReadProfiles(folder))));
  plan.provenance = record::CollectProvenance({.command = CommandLine()}).ToJson();
  console.Text(advise::PlanText(console.style(), plan));
  TRY_STATUS(console.Json(plan.ToJson()));
  return plan.met ? kDone : kClaimInvalid;
}

}  // namespace

int Plan(const Arguments& arguments) {
  std::string file, folder, json;
  Flags flags(
      "plan",
      "Says how many storage units, links and hosts a workload needs, from measured profiles, and what "
      "doubling each buys.",
      "weir plan studies/plan/workload.yaml --profiles studies/plan/profiles");
  flags.Required("WORKLOAD", file, "YAML file with the works to be carried.");
  flags.Text("--profiles", folder,
             "Folder with the results (--json) of weir probe storage, probe network, run and load.");
  flags.Text("--json", json, "JSON file for the result; - for standard output.");
  if (const auto status = flags.Parse(arguments)) return *status;
  if (folder.empty())
    return FailWith(
        {ErrorCode::kInvalidArgument, "--profiles DIR: name the folder with the measured results"});
  const Result<int> status = RunPlan(file, folder, json);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
