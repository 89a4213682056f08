#include "prepare/verify_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/count.h"
#include "base/json.h"
#include "dataset/set.h"

namespace weir::prepare {
namespace {

constexpr int kFoldersAboveASet = 3;  // of a part, of a variation, of a share

std::vector<std::string> FindSetsWithin(const std::string& folder, int depth) {
  if (dataset::PreparedSet::IsSet(folder)) return {folder};
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (depth == 0 || !entry.is_directory(error)) continue;
    std::ranges::move(FindSetsWithin(entry.path(), depth - 1), std::back_inserter(folders));
  }
  std::ranges::sort(folders);
  return folders;
}

}  // namespace

std::vector<std::string> FindSets(const std::string& folder) {
  return FindSetsWithin(folder, kFoldersAboveASet);
}

Result<results::VerifyResult> VerifyFolder(const std::string& folder, const dataset::VerifyOptions& options) {
  const std::vector<std::string> folders = FindSets(folder);
  if (folders.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: there is no finished set (no set.json)", EscapeBytes(folder)));
  }
  results::VerifyResult result;
  for (const std::string& one : folders) {
    const dataset::VerifyReport report = TRY(dataset::VerifySet(one, options));
    result.faults += report.faults;
    results::VerifyResult::Set& set = result.sets.emplace_back();
    set = {.folder = EscapeBytes(one),
           .images = report.images,
           .bytes = report.bytes,
           .faults = report.faults,
           .examples = {}};
    for (const std::string& example : report.examples) set.examples.push_back(EscapeBytes(example));
  }
  return result;
}

std::string VerifyText(const results::VerifyResult& result) {
  std::string text;
  for (const results::VerifyResult::Set& set : result.sets) {
    for (const std::string& example : set.examples) text += fmt::format("{}: {}\n", set.folder, example);
    text += fmt::format("{}: {} pictures, {}: {}\n", set.folder, Count(set.images),
                        Size(static_cast<double>(set.bytes)),
                        set.faults == 0 ? "as the manifest says" : Count(set.faults, "fault"));
  }
  return text;
}

}  // namespace weir::prepare
