#include "dataset/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "dataset/recipe.h"

namespace weir::dataset {

Result<std::vector<std::string>> ParseLabels(std::string_view text) {
  const auto refuse = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  if (text.size() > kMostLabelBytes)
    return refuse(
        fmt::format("more than {} MiB of labels; give one short name a line", kMostLabelBytes >> 20));
  std::vector<std::string> labels;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (labels.size() == kMostLabels)
      return refuse(fmt::format("more than {} labels; a line is the name of one class", kMostLabels));
    if (line.size() > kMostBytesOfALabel) {
      return refuse(fmt::format("line {}: a label of {} bytes; give it at most {}", labels.size() + 1,
                                line.size(), kMostBytesOfALabel));
    }
    labels.emplace_back(line);
    begin = end + 1;
  }
  return labels;
}

Result<std::vector<std::string>> ReadLabels(const std::string& path) {
  const Bytes text = TRY(ReadFile(path, kMostLabelBytes));
  return TRY_CONTEXT(ParseLabels(text.text()), path);
}

}  // namespace weir::dataset
