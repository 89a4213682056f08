#include "report/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/count.h"
#include "report/number.h"
#include "report/unit.h"

namespace weir::report {
namespace {

Chart ToChart(const Json& figure, double confidence) {
  const bool lines = figure["kind"] == "lines";
  const Unit unit = UnitOf(figure["metric"].get<std::string>());
  Chart chart{.kind = lines ? Chart::Kind::kLines : Chart::Kind::kBars,
              .title = figure["title"].get<std::string>(),
              .x_label = FactorWords(figure.value("x", "")),
              .x_unit = figure.value("x", "") == "batch" ? "pictures" : "",
              .y_label = figure["metric"].get<std::string>(),
              .y_unit = unit.name,
              .note = fmt::format("Error bars: the {} interval of the mean (Student's t over the repeats), "
                                  "none below 0.",
                                  Percent(confidence))};
  for (const Json& one : figure["series"]) {
    Series series{.name = one["name"].get<std::string>()};
    for (const Json& point : one["points"]) {
      std::string note = Count(point["n"].get<int64_t>(), "trial");
      if (const auto suspect = point["suspect"].get<int64_t>(); suspect > 0)
        note += fmt::format(", {} SUSPECT", suspect);
      series.points.push_back({.x = NumberAt(point, "x"),
                               .name = point.value("name", ""),
                               .value = point["mean"].get<double>() * unit.scale,
                               .low = LowAt(point, "mean", unit.scale),
                               .high = NumberAt(point, "high", unit.scale),
                               .note = std::move(note)});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::string Subtitle(const StudyView& study) {
  const Json& trials = study.At("trials");
  return fmt::format(
      "{} in {}, {} planned; {} VALID, {} SUSPECT, {} INVALID, {} "
      "failed, {} skipped",
      Count(static_cast<int64_t>(study.configurations()), "configuration"),
      Count(study.At("blocks").get<int64_t>(), "randomised block"),
      Count(trials["planned"].get<int64_t>(), "trial"), trials["valid"].get<int64_t>(),
      trials["suspect"].get<int64_t>(), trials["invalid"].get<int64_t>(), trials["failed"].get<int64_t>(),
      trials["skipped"].get<int64_t>());
}

}  // namespace

std::string FactorWords(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

Section FiguresSection(const StudyView& study) {
  Section section{.title = "Figures"};
  for (const Json& figure : study.At("figures"))
    section.blocks.emplace_back(ToChart(figure, study.At("options")["confidence"].get<double>()));
  if (section.blocks.empty()) section.blocks.emplace_back(Paragraph{"Nothing to draw: no trial counts."});
  return section;
}

Document StudyDocument(const Json& result) {
  const StudyView study(result);
  const std::string question = result["study"].value("question", "");
  Document document{.title = question.empty() ? "Study " + study.name() : question,
                    .subtitle = Subtitle(study)};
  if (!question.empty()) document.subtitle = fmt::format("Study {}: {}", study.name(), document.subtitle);
  if (const Json& unnamed = study.At("unnamed"); unnamed.is_string())
    document.subtitle += ". Levels that a name leaves out: " + unnamed.get<std::string>();
  document.sections.push_back(AnswerSection(study));
  if (!study.At("compared").is_null()) document.sections.push_back(ComparedSection(study));
  for (const auto section : {FiguresSection, ConfigurationsSection, EffectsSection, Table2Section,
                             ConditionsSection, DoubtfulSection, CombinationsSection, RepeatSection})
    document.sections.push_back(section(study));
  return document;
}

}  // namespace weir::report
