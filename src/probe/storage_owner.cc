#include "probe/storage_owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/json.h"
#include "monitor/proc.h"

namespace weir::probe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "weir-probe.", kSet = ".set", kTag = ".owner", kNewTag = ".owner.new";
constexpr int64_t kSamplesPerFolder = 1000;
constexpr uint64_t kMostTagBytes = 4096;

bool IsSampleOrFolder(const std::string& name, char first, std::string_view end) {
  if (name.size() <= 1 + end.size() || name.front() != first || !name.ends_with(end)) return false;
  const std::string_view digits = std::string_view(name).substr(1, name.size() - 1 - end.size());
  return std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

// Whether a file's name is one that a prepared set has: its facts, lists, shards and pictures.
bool IsOfPreparedSet(const fs::path& path) {
  constexpr std::string_view kExtensions[] = {".json", ".jsonl",    ".tmp", ".part",
                                              ".tar",  ".tfrecord", ".raw", ".jpg"};
  const std::string name = path.filename().string();
  return name == "index.bin" ||
         std::ranges::any_of(kExtensions, [&](std::string_view end) { return name.ends_with(end); });
}

// Removes the samples below `folder`, then the folders that are empty.
void RemoveSamples(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files, folders;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!fs::is_directory(at->symlink_status(error))) continue;
    if (IsSampleOrFolder(at->path().filename().string(), 'p', "")) RemovePrepared(at->path().string());
    if (!IsSampleOrFolder(at->path().filename().string(), 'd', "")) continue;
    folders.push_back(at->path());
    std::error_code inner;
    for (fs::directory_iterator file(at->path(), inner), last; !inner && file != last; file.increment(inner))
      if (IsSampleOrFolder(file->path().filename().string(), 's', ".bin")) files.push_back(file->path());
  }
  for (const fs::path& file : files) ::unlink(file.c_str());
  for (const fs::path& below : folders) ::rmdir(below.c_str());
  ::rmdir(folder.c_str());
}

// Removes the set and then its tag, so that a kill between the two leaves a set that is still known as ours.
void RemoveSetAndTag(const std::string& folder, const std::string& tag) {
  RemoveSamples(folder);
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder, error))) ::unlink(tag.c_str());
}

std::string TagText(const HostIdentity& self) {
  return fmt::format("weir probe storage\nhost {}\nboot {}\npid {}\n", self.host_name, self.boot_id,
                     ::getpid());
}

bool NamesHost(std::string_view tag, const HostIdentity& self) {
  return !self.boot_id.empty() &&
         tag.starts_with(
             fmt::format("weir probe storage\nhost {}\nboot {}\npid ", self.host_name, self.boot_id)) &&
         tag.ends_with('\n');
}

// The sets below `path` that have a tag, by ID.
std::vector<std::string> TaggedIds(const std::string& path) {
  std::error_code error;
  std::vector<std::string> ids;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.size() <= kPrefix.size() + kTag.size() || !name.starts_with(kPrefix) || !name.ends_with(kTag))
      continue;
    ids.push_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kTag.size()));
  }
  std::ranges::sort(ids);
  return ids;
}

}  // namespace

HostIdentity ReadHostIdentity() {
  HostIdentity self;
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) == 0) self.host_name = EscapeBytes(name);
  if (const auto boot = monitor::ReadSmall("/proc/sys/kernel/random/boot_id")) {
    self.boot_id = *boot;
    while (!self.boot_id.empty() && self.boot_id.back() == '\n') self.boot_id.pop_back();
  }
  return self;
}

std::string SampleName(int64_t number) {
  return fmt::format("d{:04}/s{:08}.bin", number / kSamplesPerFolder, number);
}

std::string PreparedName(int number) { return fmt::format("p{:04}", number); }

void RemovePrepared(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files, folders{folder};
  if (!fs::is_directory(fs::symlink_status(folder, error))) return;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto status = at->symlink_status(error);
    if (fs::is_directory(status)) folders.push_back(at->path());
    if (fs::is_regular_file(status) && IsOfPreparedSet(at->path())) files.push_back(at->path());
  }
  for (const fs::path& file : files) ::unlink(file.c_str());
  for (auto below = folders.rbegin(); below != folders.rend(); ++below) ::rmdir(below->c_str());
}

Result<OwnedFolder> OwnedFolder::Make(const std::string& path) {
  uint64_t chance = 0;
  if (::getrandom(&chance, sizeof chance, 0) != sizeof chance)
    return FailErrno("random bytes for a folder's name", errno);
  const std::string stem = fmt::format("{}/{}{:016x}", path, kPrefix, chance);
  const std::string folder = stem + std::string(kSet), tag = stem + std::string(kTag),
                    fresh = stem + std::string(kNewTag);
  UniqueFd lock(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock.valid()) return FailErrno(EscapeBytes(fresh), errno);
  const auto fail = [&](const std::string& what, int error) {
    ::unlink(fresh.c_str());
    ::unlink(tag.c_str());
    return FailErrno(EscapeBytes(what), error);
  };
  const std::string text = TagText(ReadHostIdentity());
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return fail(fresh + ": lock", errno);
  if (::write(lock.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail(fresh, errno == 0 ? ENOSPC : errno);
  if (::fsync(lock.get()) != 0) return fail(fresh, errno);
  if (::rename(fresh.c_str(), tag.c_str()) != 0) return fail(fresh, errno);  // the lock goes with the file
  if (::mkdir(folder.c_str(), 0700) != 0) return fail(folder, errno);
  return OwnedFolder(folder, tag, std::move(lock));
}

void OwnedFolder::Remove() {
  if (path_.empty() || !lock_.valid()) return;
  RemoveSetAndTag(path_, tag_);
  path_.clear();
  lock_ = UniqueFd();
}

Orphans RemoveOrphans(const std::string& path, const HostIdentity& self) {
  Orphans orphans;
  for (const std::string& id : TaggedIds(path)) {
    const std::string stem = path + "/" + std::string(kPrefix) + id;
    const std::string folder = stem + std::string(kSet), tag = stem + std::string(kTag);
    const UniqueFd lock(::open(tag.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!lock.valid()) continue;
    const auto text = ReadFile(tag, kMostTagBytes);
    if (!text) continue;
    const std::string_view words = text->text();
    if (!NamesHost(words, self)) {
      if (words.starts_with("weir probe storage\n")) orphans.foreign.push_back(folder);
      continue;
    }
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;  // its process lives
    RemoveSetAndTag(folder, tag);
    std::error_code error;
    if (!fs::exists(fs::symlink_status(folder, error))) orphans.removed.push_back(folder);
  }
  return orphans;
}

std::string ForeignText(const std::string& folder) {
  return fmt::format(
      "{} belongs to a probe on another host, or before a restart; remove it and its .owner "
      "file if that probe has ended",
      EscapeBytes(folder));
}

}  // namespace weir::probe
