#include "report/table2.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/number.h"
#include "report/study_report.h"
#include "report/study_text.h"

namespace weir::report {
namespace {

constexpr size_t kAcross = 5;  // configurations side by side; more do not fit a page

void AddRange(std::vector<Table2Row>& rows, const std::string& paper, const std::string& metric,
              const std::string& unit, double scale) {
  for (const auto& [words, key] : {std::pair{"average", "mean"}, {"maximum", "max"}, {"minimum", "min"}})
    rows.push_back(
        {fmt::format("{}, {}", paper, words), fmt::format("resources.{}.{}", metric, key), unit, scale});
}

std::vector<Table2Row> MakeTable2() {
  std::vector<Table2Row> rows{{"time: model preparation", "stages_ms.model_prepare", "ms"},
                              {"time: data loading and preparation", "stages_ms.load_prepare", "ms"},
                              {"time: waiting (not in the paper)", "stages_ms.wait", "ms"},
                              {"time: sending data to the recogniser", "stages_ms.send", "ms"},
                              {"time: the recogniser's work", "stages_ms.infer", "ms"},
                              {"time: loading results from it", "stages_ms.result_load", "ms"},
                              {"time: printing the predictions file", "stages_ms.print", "ms"}};
  AddRange(rows, "CPU, whole server", "server_cpu", "cores", 1);
  AddRange(rows, "CPU, recogniser", "recogniser_cpu", "cores", 1);
  AddRange(rows, "CPU, whole client", "client_cpu", "cores", 1);
  AddRange(rows, "CPU, app", "app_cpu", "cores", 1);
  AddRange(rows, "GPU", "gpu_percent", "%", 1);
  AddRange(rows, "memory, host without the container", "host_memory_bytes", "MB", 1e-6);
  AddRange(rows, "memory, inside the container", "container_memory_bytes", "MB", 1e-6);
  return rows;
}

// The notes of a table, each once; a cell says "(1)" with its place.
class Notes {
 public:
  std::string Number(std::string why) {
    auto at = std::ranges::find(texts_, why);
    if (at == texts_.end()) at = texts_.insert(texts_.end(), std::move(why));
    return fmt::format("({})", at - texts_.begin() + 1);
  }
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < texts_.size(); ++i) lines.push_back(fmt::format("({}) {}", i + 1, texts_[i]));
    return lines;
  }

 private:
  std::vector<std::string> texts_;
};

std::string FigureText(const results::Figures& figures, double scale) {
  const std::string text = report::Number(figures.mean * scale);
  const auto& error = figures.standard_error;
  return error ? fmt::format("{} ± {}", text, report::Number(*error * scale)) : text;
}

std::string Cell(const StudyResult& study, size_t index, const Table2Row& row, Notes& notes) {
  // Over a server the client's preparation is a question to it; the model is prepared while the server
  // starts.
  const results::Figures* start = study.FindFigures(index, "server_start_s");
  if (row.metric == "stages_ms.model_prepare" && start != nullptr)
    return fmt::format("{} {}", FigureText(*start, 1000),
                       notes.Number("from the server's launch until it is ready"));
  const results::Figures* figures = study.FindFigures(index, row.metric);
  if (figures == nullptr) return "- " + notes.Number(WhyAbsent(study, index, row.metric));
  std::string text = FigureText(*figures, row.scale);
  if (row.metric.starts_with("resources.container_memory_bytes")) {
    if (const auto what = study.CommonestWord(index, "container_memory_is"))
      text += " " + notes.Number(what->word);
  }
  return text;
}

Table TableOf(const StudyResult& study, const std::vector<Table2Row>& rows, size_t begin, size_t end) {
  Table table{.columns = {"parameter", "ours", "unit"}, .text_columns = 3};
  Notes notes;
  for (size_t i = begin; i < end; ++i) {
    const bool suspect = study.configurations[i].trials.suspect > 0;
    table.columns.push_back(study.label(i) + (suspect ? " *" : ""));
  }
  for (const Table2Row& row : rows) {
    std::vector<std::string> cells{row.paper, row.metric, row.unit};
    for (size_t i = begin; i < end; ++i) cells.push_back(Cell(study, i, row, notes));
    table.rows.push_back(std::move(cells));
  }
  table.notes = notes.Lines();
  return table;
}

// A study without an accelerator has no rows of its events.
std::vector<Table2Row> BesideRowsOf(const StudyResult& study) {
  std::vector<Table2Row> rows = BesideRows();
  std::erase_if(rows, [&](const Table2Row& row) {
    if (!row.metric.starts_with("stages_ms.device.")) return false;
    for (size_t i = 0; i < study.configurations.size(); ++i)
      if (study.FindFigures(i, row.metric) != nullptr) return false;
    return true;
  });
  return rows;
}

}  // namespace

const std::vector<Table2Row>& Table2Rows() {
  static const std::vector<Table2Row> kRows = MakeTable2();
  return kRows;
}

const std::vector<Table2Row>& BesideRows() {
  static const std::vector<Table2Row> kRows{
      {"recogniser's work: to the device", "stages_ms.device.host_to_device", "ms"},
      {"recogniser's work: on the device", "stages_ms.device.computation", "ms"},
      {"recogniser's work: from the device", "stages_ms.device.device_to_host", "ms"},
      {"CPU pressure", "resources.cpu_pressure_percent", "% of the time"},
      {"memory pressure", "resources.memory_pressure_percent", "% of the time"},
      {"storage pressure", "resources.io_pressure_percent", "% of the time"},
      {"network, received", "resources.received_bytes", "MB", 1e-6},
      {"network, sent", "resources.sent_bytes", "MB", 1e-6},
      {"disk, read", "resources.read_bytes", "MB", 1e-6},
      {"disk, written", "resources.written_bytes", "MB", 1e-6},
      {"held back by the CPU quota", "resources.throttled_s", "s"},
      {"taken by the hypervisor", "resources.steal_percent", "% of the CPU"},
      {"the observer itself", "resources.observer_cpu", "cores"}};
  return kRows;
}

std::string WhyAbsent(const StudyResult& study, size_t configuration, const std::string& metric) {
  for (std::string name = metric; !name.empty();) {
    if (const auto word = study.CommonestWord(configuration, "absent." + name)) return word->word;
    const size_t dot = name.rfind('.');
    name = dot == std::string::npos ? "" : name.substr(0, dot);
  }
  const StudyResult::Configuration& one = study.configurations[configuration];
  if (one.metrics.all.empty()) return "no trial of this configuration counts";
  const bool in_process = one.design.factors.value("architecture", std::string("in-process")) == "in-process";
  if (in_process && metric.starts_with("resources.container_memory_bytes"))
    return "in one process there is no container";
  if (metric.starts_with("resources.gpu_percent")) return "no accelerator was watched";
  return "not measured";
}

Section Table2Section(const StudyResult& study) {
  Section section{.title = "Table 2: times and resources", .folded = true};
  section.blocks.emplace_back(Paragraph{
      "The parameters of the Table 2 of Tulchinsky et al. 2020 by its names, ours beside them: mean over the "
      "trials ± "
      "its standard error. "
      "Times are totals over the pictures of a trial, as each picture sees them (a batch's time counts for "
      "each of its pictures); "
      "over a server the recogniser's work is the round trip. docs/results.md tells what each figure is. "
      "* some of the trials are SUSPECT."});
  for (size_t begin = 0; begin < study.configurations.size(); begin += kAcross) {
    const size_t end = std::min(begin + kAcross, study.configurations.size());
    section.blocks.emplace_back(TableOf(study, Table2Rows(), begin, end));
  }
  section.blocks.emplace_back(Paragraph{"Beside them:"});
  const std::vector<Table2Row> beside = BesideRowsOf(study);
  for (size_t begin = 0; begin < study.configurations.size(); begin += kAcross) {
    const size_t end = std::min(begin + kAcross, study.configurations.size());
    section.blocks.emplace_back(TableOf(study, beside, begin, end));
  }
  return section;
}

}  // namespace weir::report
