#include "object/mirror.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/parallel.h"
#include "base/private_file.h"
#include "object/sigv4.h"
#include "object/url.h"

namespace weir::object {
namespace {

constexpr int kRangesAtOnce = 32, kUploadThreads = 8;
constexpr int64_t kBytesAtOnce = 128 << 20;
constexpr const char* kIndex = ".weir-objects";  // in a cache folder: which version of each object lies there

bool IsPath(std::string_view key) {
  if (key.empty() || key.contains('\0')) return false;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.starts_with(kIndex) || part.size() > 255)
      return false;
    begin = end + 1;
  }
  return true;
}

// Name of a copy -> version. One line each: ETag, tab, size, tab, escaped name. Later lines count.
using Index = std::map<std::string, std::string>;

std::string VersionOf(const ListedObject& object) { return fmt::format("{}\t{}", object.etag, object.size); }

Index ReadIndex(const std::string& folder) {
  Index index;
  const Result<std::string> text = ReadTextFile(folder + "/" + kIndex);
  if (!text) return index;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    if (end == rest.npos) break;  // cut by a kill
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const size_t tab = line.find('\t', line.find('\t') + 1);
    if (tab == line.npos) continue;
    const auto name = UnescapeBytes(line.substr(tab + 1));
    if (name) index[*name] = line.substr(0, tab);
  }
  return index;
}

std::string IndexLine(const std::string& name, const std::string& version) {
  std::string escaped = EscapeBytes(name);
  for (size_t at = 0; (at = escaped.find('\n', at)) != escaped.npos;) escaped.replace(at, 1, "\\x0a");
  return fmt::format("{}\t{}\n", version, escaped);
}

bool IsThere(const std::string& path, int64_t size) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == size;
}

Status WriteAt(int fd, const std::string& path, std::span<const std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t now = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (now < 0) return FailErrno(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(now));
    offset += now;
  }
  return {};
}

// The ranges of the objects that are missing: fetched many at once, written by the calling thread.
class Downloads {
 public:
  Downloads(ObjectSource& source, std::string folder,
            std::vector<std::pair<ListedObject, std::string>> wanted, const MirrorOptions& options,
            int64_t total)
      : source_(source),
        folder_(std::move(folder)),
        wanted_(std::move(wanted)),
        options_(options),
        total_(total) {}

  Status Run() {
    index_ =
        UniqueFd(::open((folder_ + "/" + kIndex).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!index_.valid()) return FailErrno(folder_, errno);
    Status status;
    while (status && (next_ < wanted_.size() || !files_.empty())) status = Step();
    for (const auto& [number, file] : files_) ::unlink(file.temporary.c_str());
    return status;
  }
  int64_t bytes() const { return bytes_; }

 private:
  struct File {
    UniqueFd fd;
    std::string temporary;
    int64_t asked = 0, left = 0;
  };
  struct Piece {
    size_t file = 0;
    int64_t offset = 0;
    Result<Response> response;
  };
  struct Shared {
    Mutex mutex;
    CondVar changed;
    std::deque<Piece> pieces GUARDED_BY(mutex);
  };

  Status Step() {
    if (options_.stop.stop_requested())
      return Fail(ErrorCode::kCancelled, "stopped while objects were copied");
    while (open_ < kRangesAtOnce && open_bytes_ < kBytesAtOnce && TRY(Ask())) continue;
    std::deque<Piece> pieces;
    {
      const std::stop_callback wake(options_.stop, [shared = shared_] {
        MutexLock lock(shared->mutex);
        shared->changed.NotifyAll();
      });
      MutexLock lock(shared_->mutex);
      while (shared_->pieces.empty() && open_ > 0 && !options_.stop.stop_requested())
        shared_->changed.Wait(shared_->mutex);
      pieces.swap(shared_->pieces);
    }
    for (Piece& piece : pieces) TRY_STATUS(Take(piece));
    return {};
  }

  // Returns false if there is nothing more to ask for.
  Result<bool> Ask() {
    if (next_ >= wanted_.size()) return false;
    const auto& [object, name] = wanted_[next_];
    File& file = files_[next_];
    if (!file.fd.valid()) {
      const std::string path = folder_ + "/" + name;
      TRY_STATUS(MakeFolders(path.substr(0, path.rfind('/'))));
      file.temporary = TemporaryBeside(path);
      file.fd = UniqueFd(::open(file.temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      if (!file.fd.valid()) return FailErrno(file.temporary, errno);
      file.left = object.size;
    }
    const size_t number = next_;
    const int64_t offset = file.asked, size = std::min(kPartBytes, object.size - offset);
    file.asked += size;
    if (file.asked >= object.size) ++next_;
    if (size == 0) {  // an empty object
      TRY_STATUS(Finish(number));
      return true;
    }
    ++open_;
    open_bytes_ += size;
    ObjectSource::Read read{
        .key = object.key, .etag = object.etag, .size = size, .max_bytes = static_cast<uint64_t>(size) + 1};
    if (object.size > kPartBytes) read.range = Range{offset, size};
    source_.Start(std::move(read), [shared = shared_, number, offset](Result<Response> response) {
      MutexLock lock(shared->mutex);
      shared->pieces.push_back({number, offset, std::move(response)});
      shared->changed.NotifyAll();
    });
    return true;
  }

  Status Take(Piece& piece) {
    if (!piece.response) return std::unexpected(piece.response.error());
    const auto size = static_cast<int64_t>(piece.response->body.size());
    --open_;
    open_bytes_ -= size;
    bytes_ += size;
    File& file = files_.at(piece.file);
    TRY_STATUS(WriteAt(file.fd.get(), file.temporary, piece.response->body.span(), piece.offset));
    file.left -= size;
    return file.left == 0 ? Finish(piece.file) : Status();
  }

  Status Finish(size_t number) {
    const auto& [object, name] = wanted_[number];
    const File& file = files_.at(number);
    const std::string path = folder_ + "/" + name, line = IndexLine(name, VersionOf(object));
    if (::fsync(file.fd.get()) != 0 || ::rename(file.temporary.c_str(), path.c_str()) != 0)
      return FailErrno(path, errno);
    if (::write(index_.get(), line.data(), line.size()) != std::ssize(line)) return FailErrno(folder_, errno);
    files_.erase(number);
    ++done_;
    if (options_.progress) options_.progress(total_ - std::ssize(wanted_) + done_, total_);
    return {};
  }

  ObjectSource& source_;
  const std::string folder_;
  const std::vector<std::pair<ListedObject, std::string>> wanted_;  // with the name in the folder
  const MirrorOptions& options_;
  const int64_t total_;
  UniqueFd index_;
  std::map<size_t, File> files_;  // begun, by their number in wanted_
  size_t next_ = 0;
  int open_ = 0;
  int64_t open_bytes_ = 0, bytes_ = 0, done_ = 0;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

Result<std::string> CacheRoot(const Environment& environment) {
  const auto value = [&](const char* name) { return environment(name).value_or(""); };
  if (const std::string given = value("WEIR_CACHE_DIR"); !given.empty()) return given;
  if (const std::string base = value("XDG_CACHE_HOME"); !base.empty()) return base + "/weir";
  if (const std::string home = value("HOME"); !home.empty()) return home + "/.cache/weir";
  return Fail(ErrorCode::kInvalidArgument, "no folder for copies of objects: set WEIR_CACHE_DIR");
}

Result<std::string> FolderFor(const Environment& environment, const char* kind, std::string url) {
  while (url.ends_with('/')) url.pop_back();
  const std::string folder =
      fmt::format("{}/{}/{}", TRY(CacheRoot(environment)), kind, Sha256Hex(url).substr(0, 32));
  TRY_STATUS(MakeFolders(folder));
  if (::chmod(folder.c_str(), 0700) != 0) return FailErrno(folder, errno);
  return folder;
}

// Holds others off until it is closed.
Result<UniqueFd> Lock(const std::string& folder) {
  const std::string path = folder + "/" + kIndex + ".lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return FailErrno(path, errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return FailErrno(path, errno);
  }
  return fd;
}

bool IsSetFacts(const std::string& name) { return name == "set.json" || name.ends_with("/set.json"); }

std::string Unquoted(std::string_view etag) {
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"'))
    etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

// Files of a folder in byte order of their names in it; those of programs that write and of caches left out.
Result<std::vector<std::string>> FilesOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::recursive_directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().string().substr(folder.size() + 1);
    const std::string last = entries->path().filename();
    std::error_code ignored;
    if (entries->is_regular_file(ignored) && !last.starts_with('.') && !last.ends_with(".tmp"))
      names.push_back(name);
  }
  if (error) return FailErrno(folder, error.value());
  std::ranges::sort(names);
  return names;
}

// Removes the files that are no copies of what is `there` (also those that a kill kept out of the index), and
// takes the others from everybody but the owner: older versions left them open.
Status RemoveOthers(const std::string& folder, const Index& there) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored)) files.push_back(entry->path());
  }
  if (error) return FailErrno(folder, error.value());
  for (const fs::path& file : files) {
    const std::string name = file.string().substr(folder.size() + 1);
    const bool stays = there.contains(name) || name.starts_with(kIndex);
    if ((stays ? ::chmod(file.c_str(), 0600) : ::unlink(file.c_str())) != 0)
      return FailErrno(file.string(), errno);
  }
  return {};
}

// Forgets all copies of a URL at which nothing is any more, and gives the error on.
std::unexpected<Error> Forget(const std::string& folder, Error error) {
  const Result<UniqueFd> lock = Lock(folder);
  const Status removed = lock ? RemoveOthers(folder, {}) : std::unexpected(lock.error());
  ::unlink((folder + "/" + kIndex).c_str());
  if (!removed) error.message += fmt::format(" (and its copy stays: {})", removed.error().message);
  return std::unexpected(std::move(error));
}

}  // namespace

Result<MirrorReport> Download(ObjectSource& source, const std::string& prefix, const std::string& folder,
                              const MirrorOptions& options) {
  const std::vector<ListedObject> objects = TRY(source.List(prefix, options.stop));
  TRY_STATUS(MakeFolders(folder));
  const UniqueFd lock = TRY(Lock(folder));
  const Index index = ReadIndex(folder);
  std::string kept;
  std::vector<std::pair<ListedObject, std::string>> wanted;
  MirrorReport report;
  Index there;
  for (const ListedObject& object : objects) {
    const std::string name = object.key.substr(prefix.size());
    if (name.empty() || name.ends_with('/')) continue;  // how consoles show folders
    if (!IsPath(name)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: this key cannot be a path below a folder: rename the object",
                              source.NameOf(object.key)));
    }
    ++report.objects;
    there[name] = VersionOf(object);
    const auto known = index.find(name);
    if (known != index.end() && known->second == VersionOf(object) && !object.etag.empty() &&
        IsThere(folder + "/" + name, object.size)) {
      kept += IndexLine(name, known->second);
    } else {
      wanted.emplace_back(object, name);
    }
  }
  if (report.objects == 0)
    return Fail(ErrorCode::kNotFound, fmt::format("{}: no object begins with this", source.NameOf(prefix)));
  // set.json last: a reader that looks at the folder meanwhile finds no set, or a whole one.
  std::ranges::stable_partition(wanted, [](const auto& each) { return !IsSetFacts(each.second); });
  TRY_STATUS(RemoveOthers(folder, there));
  TRY_STATUS(WritePrivateFile(folder + "/" + kIndex, kept));
  report.copied = std::ssize(wanted);
  Downloads downloads(source, folder, std::move(wanted), options, report.objects);
  TRY_STATUS(downloads.Run());
  report.bytes = downloads.bytes();
  return report;
}

Result<std::string> ETagOfFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts{};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  const int64_t part_bytes = std::max(kPartBytes, (facts.st_size + 9999) / 10'000);
  std::string digests, part;
  for (int64_t offset = 0; offset == 0 || offset < facts.st_size; offset += part_bytes) {
    part.resize(static_cast<size_t>(std::min(part_bytes, facts.st_size - offset)));
    for (size_t got = 0; got < part.size();) {
      const ssize_t now =
          ::pread(fd.get(), part.data() + got, part.size() - got, offset + static_cast<int64_t>(got));
      if (now <= 0) return Fail(ErrorCode::kIo, fmt::format("{}: cannot be read whole", path));
      got += static_cast<size_t>(now);
    }
    digests += Md5(part);
  }
  if (facts.st_size <= kPartBytes) return ToHex(digests);
  return fmt::format("{}-{}", ToHex(Md5(digests)), digests.size() / 16);
}

Result<MirrorReport> Upload(ObjectSource& source, const std::string& folder, const std::string& prefix,
                            const MirrorOptions& options) {
  const std::vector<std::string> names = TRY(FilesOf(folder));
  if (names.empty()) return Fail(ErrorCode::kNotFound, fmt::format("{}: no file is there", folder));
  std::map<std::string, std::string> there;
  for (ListedObject& object : TRY(source.List(prefix, options.stop)))
    there[object.key] = Unquoted(object.etag);
  MirrorReport report{.objects = std::ssize(names)};
  std::atomic<int64_t> copied = 0, bytes = 0, done = 0;
  const auto write = [&](const std::string& name) -> Status {
    const std::string path = folder + "/" + name, key = prefix + name;
    const auto known = there.find(key);
    if (known != there.end() && known->second == TRY(ETagOfFile(path))) return {};
    TRY_STATUS(source.WriteFile(key, path, options.stop));
    ++copied;
    std::error_code ignored;
    bytes += static_cast<int64_t>(std::filesystem::file_size(path, ignored));
    return {};
  };
  for (const bool facts : {false, true}) {
    std::vector<std::string> round;
    std::ranges::copy_if(names, std::back_inserter(round),
                         [&](const std::string& name) { return IsSetFacts(name) == facts; });
    // A set that is written anew is none until it is whole again; its old set.json stays only if nothing
    // changes.
    std::atomic<bool> failed = false;
    Mutex mutex;
    Status first;  // guarded by `mutex`
    ParallelFor("upload", std::ssize(round), kUploadThreads, [&](int64_t at) {
      if (failed) return;
      Status status = options.stop.stop_requested() ? Status(Fail(ErrorCode::kCancelled, "stopped"))
                                                    : write(round[static_cast<size_t>(at)]);
      ++done;
      if (status) return;
      failed = true;
      MutexLock lock(mutex);
      if (first) first = std::move(status);
    });
    MutexLock lock(mutex);
    TRY_STATUS(first);
    if (options.progress) options.progress(done, report.objects);
  }
  report.copied = copied;
  report.bytes = bytes;
  return report;
}

Result<std::string> CacheFolder(const Environment& environment, const std::string& url) {
  return FolderFor(environment, "objects", url);
}

Result<std::string> StagingFolder(const Environment& environment, const std::string& url) {
  return FolderFor(environment, "staging", url);
}

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Result<std::string> Localise(SourceSet& sources, const std::string& url, const MirrorOptions& options) {
  if (!IsObjectUrl(url)) return url;
  const auto [source, key] = TRY(sources.Open(url));
  const std::string folder = TRY(CacheFolder(ProcessEnvironment(), url));
  const std::string prefix = key.empty() || key.ends_with('/') ? key : key + "/";
  if (url.starts_with("s3://")) {
    const auto below = Download(*source, prefix, folder, options);
    if (below) return folder;
    if (below.error().code != ErrorCode::kNotFound) return std::unexpected(below.error());
    if (prefix == key) return Forget(folder, below.error());
  }
  // One object: kept below its own version, so that what reads an old one is not disturbed.
  const auto found = source->Facts(key, options.stop);
  if (!found && found.error().code == ErrorCode::kNotFound) return Forget(folder, found.error());
  const ObjectFacts facts = TRY(found);
  const std::string name = key.substr(key.rfind('/') + 1);
  const std::string file_name = name.substr(0, name.find('?'));
  if (!IsPath(file_name))
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: no name of a file", source->NameOf(key)));
  const UniqueFd lock = TRY(Lock(folder));
  const ListedObject object{key, facts.size, facts.etag};
  const Index index = ReadIndex(folder);
  const std::string path = folder + "/" + file_name;
  TRY_STATUS(RemoveOthers(folder, {{file_name, ""}}));
  const auto known = index.find(file_name);
  if (known != index.end() && known->second == VersionOf(object) && !facts.etag.empty() &&
      IsThere(path, facts.size))
    return path;
  Downloads downloads(*source, folder, {{object, file_name}}, options, 1);
  TRY_STATUS(downloads.Run());
  return path;
}

Result<MirrorReport> Publish(SourceSet& sources, const std::string& folder, const std::string& url,
                             const MirrorOptions& options) {
  const auto [source, key] = TRY(sources.Open(url));
  return Upload(*source, folder, key.empty() || key.ends_with('/') ? key : key + "/", options);
}

}  // namespace weir::object
