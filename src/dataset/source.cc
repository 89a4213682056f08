#include "dataset/source.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/file.h"
#include "dataset/objects.h"
#include "dataset/set.h"
#include "image/decode.h"

namespace weir::dataset {
namespace {

// Looks at the first bytes of a regular file; an empty string where they begin a picture, else why it is
// none.
std::string WhyNotShapedLikeAPicture(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::array<std::byte, 16> head;
  const ssize_t got = fd.valid() ? ::read(fd.get(), head.data(), head.size()) : -1;
  if (got < 0) return fmt::format("not a picture by name, and unreadable: {}", std::strerror(errno));
  const bool shaped = image::SniffFormat(std::span(head).first(static_cast<size_t>(got))).has_value();
  return shaped ? "" : "not a picture by name or content";
}

// The names in a folder in byte order.
Result<std::vector<std::string>> ReadFolder(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), ::closedir);
  if (!stream) return FailErrno(folder, errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return FailErrno(folder, errno);
  std::ranges::sort(names);
  return names;
}

// Walks one argument.
class Walk {
 public:
  Walk(Listing& listing, size_t folder_bytes) : listing_(listing), folder_bytes_(folder_bytes) {}

  // `folder` ends with a slash.
  Status Enter(const std::string& folder, const struct stat& facts, int depth = 0) {
    if (!visits_.Enter(depth, facts.st_dev, facts.st_ino)) {
      Skip(folder, "folder already visited", std::nullopt);
      return {};
    }
    if (PreparedSet::IsSet(folder)) return AddSet(folder);
    if (PreparedSet::IsUnfinished(folder)) {
      return Fail(
          ErrorCode::kCorrupt,
          fmt::format(
              "{}: the making of this set is not finished: run its command again, which goes on with it",
              folder));
    }
    const Result<std::vector<std::string>> names = ReadFolder(folder);
    if (!names) {
      Skip(folder, fmt::format("unreadable folder: {}", names.error().message.substr(folder.size() + 2)),
           image::RejectReason::kUnreadable);
      return {};
    }
    for (const std::string& name : *names) TRY_STATUS(Meet(folder + name, name, depth));
    return {};
  }

  void AddInput(std::string path, bool is_folder = false) {
    Input& input = listing_.inputs.emplace_back();
    input.name = std::move(path);
    input.folder_bytes = folder_bytes_;
    input.is_folder = is_folder;
  }

 private:
  // One entry of a folder.
  Status Meet(const std::string& path, std::string_view name, int depth) {
    using enum image::RejectReason;
    if (name.starts_with('.')) {
      Skip(path, "hidden", kHidden);
      return {};
    }
    struct stat facts{};
    const bool there = ::stat(path.c_str(), &facts) == 0;
    const bool named = IsNamedLikeAPicture(name);
    if (there && S_ISDIR(facts.st_mode)) {
      if (named) AddInput(path, true);
      return Enter(path + "/", facts, depth + 1);
    }
    if (named) {
      AddInput(path);
    } else if (!there) {
      Skip(path, fmt::format("not a picture by name, and unreadable: {}", std::strerror(errno)), kUnreadable);
    } else if (!S_ISREG(facts.st_mode)) {
      Skip(path, "not a picture by name, and not a file", kNotAFile);
    } else if (const std::string why = WhyNotShapedLikeAPicture(path); !why.empty()) {
      NotTaken not_taken = WhyNotTaken(name, why);
      Skip(path, std::move(not_taken.why), not_taken.reason);
    } else {
      AddInput(path);
    }
    return {};
  }

  Status AddSet(const std::string& folder) {
    const int index = static_cast<int>(listing_.sets.size());
    const std::shared_ptr<const PreparedSet> set = TRY(PreparedSet::Open(folder));
    for (const SetEntry& entry : set->entries()) {
      Input& input = listing_.inputs.emplace_back();
      const std::string path = folder + entry.path;
      input.name = entry.record < 0 ? path : fmt::format("{}#{}", path, entry.record);
      input.folder_bytes = folder_bytes_;
      input.label = entry.label;
      input.record = entry.record;
      input.set = index;
    }
    listing_.sets.push_back(set);
    return {};
  }

  void Skip(std::string name, std::string why, std::optional<image::RejectReason> reason) {
    listing_.skipped.push_back({std::move(name), std::move(why), reason, folder_bytes_});
  }

  Listing& listing_;
  const size_t folder_bytes_;
  FolderVisits visits_;
};

// Compares the ending behind the name's last dot, in any case.
bool EndsWithOneOf(std::string_view name, std::span<const std::string_view> endings) {
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return false;
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::ranges::any_of(endings, [&](std::string_view ending) {
    return std::ranges::equal(name.substr(dot + 1), ending, same);
  });
}

}  // namespace

NotTaken WhyNotTaken(std::string_view name, std::string_view otherwise) {
  static constexpr std::string_view kUnread[] = {
      "avif", "avifs", "heic", "heif", "hif", "jxl", "jp2", "j2k", "jpf", "jpx", "jxr", "wdp", "svg", "svgz",
      "ico",  "cur",   "icns", "psd",  "tga", "pcx", "ppm", "pgm", "pbm", "pnm", "pfm", "pam", "exr", "hdr",
      "dds",  "qoi",   "apng", "mng",  "cr2", "cr3", "nef", "arw", "dng", "orf", "raf", "rw2", "eps", "xcf"};
  static constexpr std::string_view kArchives[] = {"tar", "tgz", "tbz2", "txz", "zip", "7z",
                                                   "rar", "gz",  "bz2",  "xz",  "zst", "lz4"};
  if (EndsWithOneOf(name, kUnread)) {
    return {image::RejectReason::kUnsupported,
            "by its ending a picture of a format that is not read: convert it to PNG or JPEG"};
  }
  if (EndsWithOneOf(name, kArchives)) {
    return {image::RejectReason::kUnsupported,
            "an archive: name it as a source of its own (tar, uncompressed), or unpack it"};
  }
  return {image::RejectReason::kNotAPicture, std::string(otherwise)};
}

bool IsHiddenName(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.starts_with('.') && part != "." && part != "..") return true;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return false;
}

bool FolderVisits::Enter(int depth, uint64_t device, uint64_t inode) {
  const std::pair here(device, inode);
  if (depth == 0) root_ = here;
  if (depth == 1) visited_.clear();
  if (depth == 1) visited_.insert(root_);
  return visited_.insert(here).second;
}

Result<Listing> ListInputs(const std::vector<std::string>& arguments) {
  Listing listing;
  for (const std::string& argument : arguments) {
    if (IsObjectUrl(argument)) {
      TRY_STATUS(ListObjects(argument, listing));
      continue;
    }
    struct stat facts{};
    if (::lstat(argument.c_str(), &facts) != 0) return FailErrno(argument, errno);
    const bool is_folder = ::stat(argument.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
    if (!is_folder) {
      Walk(listing, argument.rfind('/') + 1).AddInput(argument);
      continue;
    }
    const std::string folder = argument.ends_with('/') ? argument : argument + "/";
    TRY_STATUS(Walk(listing, folder.size()).Enter(folder, facts));
  }
  return listing;
}

image::Accepted<Bytes> LoadInput(const Listing& listing, const Input& input, uint64_t max_bytes) {
  const std::string& path = input.name;
  if (input.store >= 0) return LoadObject(listing, input, max_bytes);
  if (input.set >= 0) {
    const std::shared_ptr<const PreparedSet>& set = listing.sets[static_cast<size_t>(input.set)];
    if (input.record >= 0) {
      Result<Bytes> record = set->ReadRecord(input.record);
      if (!record) return std::unexpected(image::RejectOf(record.error(), path));
      return *std::move(record);
    }
  }
  Result<Bytes> bytes = ReadFile(path, max_bytes);
  if (bytes) return *std::move(bytes);
  image::Reject reject = image::RejectOf(bytes.error(), path);
  if (const std::string prefix = path + ": "; reject.detail.starts_with(prefix))
    reject.detail.erase(0, prefix.size());
  return std::unexpected(std::move(reject));
}

}  // namespace weir::dataset
