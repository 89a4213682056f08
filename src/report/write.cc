#include "report/write.h"

#include <utility>

#include "base/file.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/study_csv.h"
#include "report/study_report.h"

namespace weir::report {

Status WriteStudyReport(const results::StudyResult& result, const std::string& folder) {
  const Document document = StudyDocument(result);
  const std::pair<const char*, std::string> files[] = {
      {"report.html", ToHtml(document, Charts::kInteractive)},
      {"report.md", ToMarkdown(document)},
      {"report.json", DumpJsonIndented(result.ToJson()) + "\n"},
      {"results.csv", ResultsCsv(result)},
      {"summary.csv", SummaryCsv(result)}};
  for (const auto& [name, text] : files) TRY_STATUS(WriteFileWhole(folder + "/" + name, text));
  return {};
}

}  // namespace weir::report
