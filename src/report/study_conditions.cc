// Under what conditions the study was made, which trials are in doubt, and how to make it again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/count.h"
#include "base/json.h"
#include "report/number.h"
#include "report/study_report.h"
#include "report/study_text.h"
#include "report/unit.h"

namespace weir::report {
namespace {

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : DumpJson(value); }

std::string LevelsText(const Json& factors) {
  std::string text;
  for (const auto& [factor, level] : factors.items())
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", factor, Text(level));
  return text;
}

Table KeysAndValues(std::string caption, const Json& object) {
  Table table{.caption = std::move(caption), .columns = {"", ""}, .text_columns = 2};
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() || value.is_array()) {
      if (!value.empty())
        table.rows.push_back({FactorWords(key), value.is_object() ? LevelsText(value) : DumpJson(value)});
    } else {
      table.rows.push_back({FactorWords(key), Text(value)});
    }
  }
  return table;
}

Paragraph DriftParagraph(const StudyResult& study) {
  const StudyResult::Drift& drift = study.drift;
  if (!drift.change) return {"Drift: too few reference trials count to say whether the machine held still."};
  const std::string metric = MetricWords(drift.metric);
  std::string text;
  if (drift.shown && drift.low && drift.high)
    text =
        fmt::format("Drift: over {} blocks the reference configuration's {} changed by {} ({} to {})",
                    drift.blocks, metric, Percent(*drift.change), Percent(*drift.low), Percent(*drift.high));
  else if (drift.limit)
    text = fmt::format("Drift: none shown in the reference configuration's {} over {} blocks (limit {})",
                       metric, drift.blocks, Percent(*drift.limit));
  else
    text = fmt::format("Drift: {} are too few to tell", Count(drift.blocks, "block"));
  if (drift.within_block)
    text +=
        fmt::format("; at a block's end it is {} times that at its start", IntervalText(*drift.within_block));
  if (drift.trend)
    text +=
        fmt::format("; a trend as strong comes by chance with probability {}", Number(drift.trend->p_value));
  return {text + ".", drift.flagged ? Paragraph::Tone::kWarning : Paragraph::Tone::kPlain};
}

std::string WhyText(const results::Verdict& verdict) {
  const std::string reasons = ReasonsText(verdict);
  return verdict.message + (verdict.message.empty() || reasons.empty() ? "" : "; ") + reasons;
}

// How many tries each reason, or failure, has touched: the table below can be long.
std::string ByReason(const StudyResult& study) {
  std::map<std::string, int64_t> counts;
  for (const StudyResult::Row& row : study.rows) {
    const results::Verdict& verdict = row.verdict;
    if (verdict.standing == results::Standing::kValid) continue;
    if (verdict.causes.empty()) ++counts[std::string(ToString(verdict.standing))];
    for (const results::Cause& cause : verdict.causes)
      ++counts[fmt::format("{} for {}", ToString(verdict.standing), ToString(cause.reason))];
  }
  std::string text;
  for (const auto& [what, count] : counts)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", what, Count(count));
  return text + ".";
}

// Where the server of each architecture ran: the architecture's name does not tell.
std::optional<Paragraph> TopologyParagraph(const StudyResult& study) {
  std::set<std::string> found;
  for (const StudyResult::Configuration& one : study.configurations)
    found.insert(one.design.factors.value("architecture", std::string("in-process")));
  std::string text;
  if (found.contains("microservice"))
    text +=
        "Microservice: the server in a container on the client's machine, with the host's own network "
        "(--network=host): no bridge and no port mapping stand between. ";
  const std::string& host = study.study.server_host;
  if (found.contains("distributed"))
    text +=
        host.empty()
            ? "Distributed: the server in a network namespace of the same machine, behind a virtual link. "
              "Client and server share its CPU, so two machines would be faster where the CPU is short. "
            : fmt::format("Distributed: the server on {}. ", host);
  if (text.empty()) return std::nullopt;
  text.pop_back();
  return Paragraph{std::move(text)};
}

}  // namespace

Section ConditionsSection(const StudyResult& study) {
  Section section{.title = "Conditions"};
  if (auto topology = TopologyParagraph(study)) section.blocks.emplace_back(std::move(*topology));
  section.blocks.emplace_back(DriftParagraph(study));
  section.blocks.emplace_back(KeysAndValues("The study", study.study.WithoutLists()));
  section.blocks.emplace_back(KeysAndValues("The machine and the program", study.provenance));
  return section;
}

Section DoubtfulSection(const StudyResult& study) {
  Section section{.title = "Rejected, skipped and doubtful trials"};
  if (std::vector<std::string> skipped = SkippedByReason(study); !skipped.empty()) {
    section.blocks.emplace_back(Paragraph{"Skipped:"});
    section.blocks.emplace_back(List{std::move(skipped)});
  }
  Table table{.columns = {"configuration", "role", "verdict", "why", "block", "position", "try"},
              .text_columns = 4};
  for (const StudyResult::Row& row : study.rows) {
    const results::Standing standing = row.verdict.standing;
    if (standing == results::Standing::kValid || standing == results::Standing::kSkipped) continue;
    table.rows.push_back({row.label, row.role, std::string(ToString(standing)), WhyText(row.verdict),
                          fmt::format("{}", row.block + 1), fmt::format("{}", row.position + 1),
                          fmt::format("{}", row.attempt)});
  }
  if (table.rows.empty()) {
    section.blocks.emplace_back(Paragraph{"Every trial that was played is VALID."});
    return section;
  }
  section.folded = table.rows.size() > 20;
  section.blocks.emplace_back(Paragraph{ByReason(study)});
  section.blocks.emplace_back(
      Paragraph{"SUSPECT trials count and are marked; INVALID, failed and skipped ones do not. A failed "
                "trial was played once more."});
  section.blocks.emplace_back(std::move(table));
  return section;
}

Section CombinationsSection(const StudyResult& study) {
  Section section{.title = "Combinations without a trial of their own", .folded = true};
  List dropped, merged;
  for (const results::StudyDesign::Dropped& one : study.dropped)
    dropped.items.push_back(fmt::format("{}: {}", LevelsText(one.combination), one.why));
  for (const results::StudyDesign::Merged& one : study.merged)
    merged.items.push_back(fmt::format("{}: the same as {} ({})", LevelsText(one.combination),
                                       study.label(one.configuration), fmt::join(one.why, "; ")));
  if (dropped.items.empty() && merged.items.empty()) section.blocks.emplace_back(Paragraph{"None."});
  if (!dropped.items.empty()) {
    section.blocks.emplace_back(
        Paragraph{fmt::format("{} were dropped, as there is no such thing:", dropped.items.size())});
    section.blocks.emplace_back(std::move(dropped));
  }
  if (!merged.items.empty()) {
    section.blocks.emplace_back(
        Paragraph{fmt::format("{} come to the same as another:", merged.items.size())});
    section.blocks.emplace_back(std::move(merged));
  }
  return section;
}

Section RepeatSection(const StudyResult& study) {
  Section section{.title = "How to repeat it"};
  const std::string command = study.command();
  section.blocks.emplace_back(
      Paragraph{fmt::format("With the program built from {}, and the study file that lies beside this report "
                            "(study.yaml): the seed {} gives the same trials in the "
                            "same order. An interrupted study goes on with --resume.",
                            study.build_id(), study.study.seed)});
  if (!command.empty()) section.blocks.emplace_back(Paragraph{command, Paragraph::Tone::kCommand});
  const auto add = [&](const auto& row) {
    section.blocks.emplace_back(
        Paragraph{fmt::format("One trial by hand ({}); results.csv has the commands of each:", row->label)});
    if (!row->server_command.empty())
      section.blocks.emplace_back(Paragraph{row->server_command, Paragraph::Tone::kCommand});
    section.blocks.emplace_back(Paragraph{row->command, Paragraph::Tone::kCommand});
  };
  const auto first = std::ranges::find_if(study.rows, [](const auto& one) { return !one.command.empty(); });
  const auto served =
      std::ranges::find_if(study.rows, [](const auto& one) { return !one.server_command.empty(); });
  if (first != study.rows.end()) add(first);
  if (served != study.rows.end() && served != first) add(served);
  return section;
}

}  // namespace weir::report
