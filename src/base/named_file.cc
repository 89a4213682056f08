#include "base/named_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace weir {
namespace {

constexpr int kMostLinks = 40;  // the kernel follows as many

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && path != "-" && !std::filesystem::is_other(path, ignored);  // such as /dev/null
}

// Returns the file that a write to `path` changes, whether or not it exists.
std::filesystem::path TargetOf(std::filesystem::path path) {
  std::error_code error;
  for (int link = 0; link < kMostLinks && std::filesystem::is_symlink(path, error); ++link)
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
}

// Returns whether writing `output` changes `file`, or something inside it if it is a folder.
bool Touches(const std::string& output, const std::string& file) {
  if (!IsFile(output) || !IsFile(file)) return false;
  std::error_code error;
  if (std::filesystem::equivalent(output, file, error)) return true;
  const std::filesystem::path first = TargetOf(output), second = TargetOf(file);
  if (first.empty() || second.empty()) return false;
  if (!std::filesystem::is_directory(second, error)) return first == second;
  return std::ranges::mismatch(second, first).in1 == second.end();
}

}  // namespace

Status CheckApart(std::vector<NamedFile> inputs, const std::vector<NamedFile>& outputs) {
  std::vector<NamedFile> taken = std::move(inputs);
  for (const NamedFile& output : outputs) {
    for (const NamedFile& file : taken) {
      if (Touches(output.path, file.path))
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} and {} are one file, {}: name another for {}", file.name, output.name,
                                output.path, output.name));
    }
    taken.push_back(output);
  }
  return {};
}

bool LiesInside(const std::string& path, const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, ignored),
                              above = std::filesystem::weakly_canonical(folder, ignored);
  const std::filesystem::path relative = whole.lexically_relative(above);
  return !relative.empty() && relative != "." && *relative.begin() != "..";
}

}  // namespace weir
