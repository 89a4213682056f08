// Under what conditions the study was made, which trials are in doubt, and how to make it again.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/count.h"
#include "report/number.h"
#include "report/study_report.h"
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
        table.rows.push_back({key, value.is_object() ? LevelsText(value) : DumpJson(value)});
    } else {
      table.rows.push_back({key, Text(value)});
    }
  }
  return table;
}

Paragraph DriftParagraph(const StudyView& study) {
  const Json& drift = study.At("drift");
  const auto change = NumberAt(drift, "change");
  if (!change) return {"Drift: too few reference trials count to say whether the machine held still."};
  const auto low = NumberAt(drift, "low"), high = NumberAt(drift, "high"), limit = NumberAt(drift, "limit");
  const std::string metric = MetricWords(drift["metric"].get<std::string>());
  std::string text;
  if (drift.value("shown", false) && low && high)
    text =
        fmt::format("Drift: over {} blocks the reference configuration's {} changed by {} ({} to {})",
                    drift["blocks"].get<int64_t>(), metric, Percent(*change), Percent(*low), Percent(*high));
  else if (limit)
    text = fmt::format("Drift: none shown in the reference configuration's {} over {} blocks (limit {})",
                       metric, drift["blocks"].get<int64_t>(), Percent(*limit));
  else
    text = fmt::format("Drift: {} are too few to tell", Count(drift["blocks"].get<int64_t>(), "block"));
  if (drift.contains("within_block"))
    text += fmt::format("; at a block's end it is {} times that at its start",
                        IntervalText(drift["within_block"], "ratio"));
  if (drift.contains("trend"))
    text += fmt::format("; a trend as strong comes by chance with probability {}",
                        Number(drift["trend"]["p_value"].get<double>()));
  return {text + ".", drift["flagged"].get<bool>() ? Paragraph::Tone::kWarning : Paragraph::Tone::kPlain};
}

std::string WhyText(const Json& verdict) {
  const std::string message = verdict.value("message", ""), reasons = ReasonsText(verdict);
  return message + (message.empty() || reasons.empty() ? "" : "; ") + reasons;
}

// How many tries each reason, or failure, has touched: the table below can be long.
std::string ByReason(const StudyView& study) {
  std::map<std::string, int64_t> counts;
  for (const Json& row : study.At("rows")) {
    const Json& verdict = row["verdict"];
    const std::string standing = verdict["verdict"].get<std::string>();
    if (standing == "VALID") continue;
    if (verdict["reasons"].empty()) ++counts[standing];
    for (const Json& reason : verdict["reasons"])
      ++counts[standing + " for " + reason["reason"].get<std::string>()];
  }
  std::string text;
  for (const auto& [what, count] : counts)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", what, Count(count));
  return text + ".";
}

// Where the server of each architecture ran: the architecture's name does not tell.
std::optional<Paragraph> TopologyParagraph(const StudyView& study) {
  std::set<std::string> found;
  for (size_t i = 0; i < study.configurations(); ++i) {
    const Json& factors = study.configuration(i)["factors"];
    found.insert(factors.value("architecture", std::string("in-process")));
  }
  std::string text;
  if (found.contains("microservice"))
    text += "Microservice: the server in a container on the client's machine. ";
  const std::string host = study.json()["study"].value("server_host", "");
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

Section ConditionsSection(const StudyView& study) {
  Section section{.title = "Conditions"};
  if (auto topology = TopologyParagraph(study)) section.blocks.emplace_back(std::move(*topology));
  section.blocks.emplace_back(DriftParagraph(study));
  Json settings = study.json()["study"];
  for (const char* key : {"question", "figures", "also", "except"}) settings.erase(key);
  section.blocks.emplace_back(KeysAndValues("The study", settings));
  section.blocks.emplace_back(KeysAndValues("The machine and the program", study.At("provenance")));
  return section;
}

Section DoubtfulSection(const StudyView& study) {
  Section section{.title = "Rejected, skipped and doubtful trials"};
  if (std::vector<std::string> skipped = SkippedByReason(study); !skipped.empty()) {
    section.blocks.emplace_back(Paragraph{"Skipped:"});
    section.blocks.emplace_back(List{std::move(skipped)});
  }
  Table table{.columns = {"configuration", "role", "verdict", "why", "block", "position", "try"},
              .text_columns = 4};
  for (const Json& row : study.At("rows")) {
    const std::string verdict = row["verdict"]["verdict"].get<std::string>();
    if (verdict == "VALID" || verdict == "skipped") continue;
    table.rows.push_back({row["label"].get<std::string>(), row["role"].get<std::string>(), verdict,
                          WhyText(row["verdict"]), fmt::format("{}", row["block"].get<int64_t>() + 1),
                          fmt::format("{}", row["position"].get<int64_t>() + 1),
                          fmt::format("{}", row["attempt"].get<int64_t>())});
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

Section CombinationsSection(const StudyView& study) {
  Section section{.title = "Combinations without a trial of their own", .folded = true};
  List dropped, merged;
  for (const Json& one : study.At("dropped"))
    dropped.items.push_back(
        fmt::format("{}: {}", LevelsText(one["combination"]), one["why"].get<std::string>()));
  for (const Json& one : study.At("merged")) {
    std::string why;
    for (const Json& change : one["why"])
      why += fmt::format("{}{}", why.empty() ? "" : "; ", change.get<std::string>());
    merged.items.push_back(fmt::format("{}: the same as {} ({})", LevelsText(one["combination"]),
                                       study.label(one["configuration"].get<size_t>()), why));
  }
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

Section RepeatSection(const StudyView& study) {
  Section section{.title = "How to repeat it"};
  const Json& provenance = study.At("provenance");
  const std::string command = provenance.is_object() ? provenance.value("command", "") : "";
  const std::string build = provenance.is_object() ? provenance.value("build_id", "unknown") : "unknown";
  section.blocks.emplace_back(
      Paragraph{fmt::format("With the program built from {}, and the study file that lies beside this report "
                            "(study.yaml): the seed {} gives the same trials in the "
                            "same order. An interrupted study goes on with --resume.",
                            build, study.json()["study"]["seed"].get<uint64_t>())});
  if (!command.empty()) section.blocks.emplace_back(Paragraph{command, Paragraph::Tone::kCommand});
  for (const Json& row : study.At("rows")) {
    const std::string one = row.value("command", "");
    if (one.empty()) continue;
    section.blocks.emplace_back(Paragraph{fmt::format(
        "One trial by hand ({}); results.csv has the command of each:", row["label"].get<std::string>())});
    section.blocks.emplace_back(Paragraph{one, Paragraph::Tone::kCommand});
    break;
  }
  return section;
}

}  // namespace weir::report
