#include "feed/source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "dataset/set.h"
#include "dataset/tar.h"
#include "feed/array_source.h"
#include "feed/local_source.h"
#include "feed/store_source.h"
#include "object/url.h"

namespace weir::feed {

std::span<std::byte> ReadBuffer::Get(size_t size) {
  constexpr size_t kKept = 64 << 20;  // more is given back with the next sample
  if (size > capacity_ || (capacity_ > kKept && size <= kKept)) {
    data_ = std::make_unique_for_overwrite<std::byte[]>(size + size / 4);
    capacity_ = size + size / 4;
  }
  return {data_.get(), size};
}

Result<std::unique_ptr<SampleReads>> Source::ReadMany(int) const {
  return Fail(ErrorCode::kUnsupported,
              "this source has no reads side by side: leave out the number of reads");
}

Result<std::shared_ptr<const Source>> OpenSource(const std::string& path, const SourceOptions& options) {
  if (object::IsObjectUrl(path)) return OpenStore(path, options);
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISDIR(facts.st_mode) && IsArray(path)) return OpenArrays(path);
  if (!S_ISDIR(facts.st_mode) && dataset::IsTar(path)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: an archive: make a set of it first: weir prepare {} --format tar -o SET",
                            path, path));
  }
  if (!S_ISDIR(facts.st_mode)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: not a folder: give a prepared set, a folder by classes, or an array (.npy)", path));
  }
  const std::string folder = path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  if (dataset::PreparedSet::IsUnfinished(folder)) {
    return Fail(
        ErrorCode::kCorrupt,
        fmt::format("{}: the making of this set is not finished: run its command again, which goes on "
                    "with it",
                    folder));
  }
  if (!dataset::PreparedSet::IsSet(folder)) {
    auto pictures = OpenFolder(folder, options);
    const bool has_none = !pictures && pictures.error().code == ErrorCode::kInvalidArgument;
    return has_none && IsArray(folder) ? OpenArrays(folder) : std::move(pictures);
  }
  dataset::SetFacts set = TRY(dataset::ReadSetFacts(folder));
  if (set.images == 0) return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: the set is empty", folder));
  if (set.format == dataset::SetFormat::kFiles) return OpenFileSet(folder, set, options);
  return OpenShards(folder, std::move(set), options);
}

Result<std::shared_ptr<const Source>> OpenMasks(const std::string& path, const Source& pictures,
                                                const SourceOptions& options) {
  if (pictures.files() == nullptr) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: masks belong to pictures that are files: the set has records", path));
  }
  if (object::IsObjectUrl(path)) return OpenStoreOfMasks(path, *pictures.files(), options);
  const std::string folder = path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  return OpenFolderOfMasks(folder, *pictures.files(), options);
}

}  // namespace weir::feed
