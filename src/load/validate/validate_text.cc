#include "load/validate/validate_text.h"

#include <fmt/format.h>

namespace weir::load {

results::ValidateResult MakeValidateResult(const std::vector<Finding>& findings) {
  results::ValidateResult result;
  for (const Finding& finding : findings) {
    result.keeps_the_rules &= !finding.fatal;
    result.findings.push_back({.rule = std::string(finding.rule),
                               .where = finding.where,
                               .what = finding.what,
                               .fatal = finding.fatal});
  }
  return result;
}

std::string ValidateText(const results::ValidateResult& result, const std::string& file) {
  std::string text;
  for (const auto& finding : result.findings) {
    text += fmt::format("{} {}{}{}: {}\n", finding.fatal ? "FAULT" : "note ", finding.where,
                        finding.where.empty() ? "" : " ", finding.rule, finding.what);
  }
  return text +
         fmt::format("{}: {}\n", file, result.keeps_the_rules ? "it keeps the rules" : "it breaks the rules");
}

}  // namespace weir::load
