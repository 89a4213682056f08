#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "object/source.h"

namespace weir::object {
namespace {

// Contents change with the time of the last change.
std::string ETagOf(const struct stat& facts) {
  return fmt::format("\"{:x}-{:x}.{:x}\"", facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
}

class FileSource final : public ObjectSource {
 public:
  explicit FileSource(std::string folder) : folder_(std::move(folder)) {}

  std::string NameOf(std::string_view key) const override { return fmt::format("{}/{}", folder_, key); }
  void Start(Read read, Done done) override { done(ReadNow(read)); }
  Result<ObjectFacts> Facts(const std::string& key, const std::stop_token&) override {
    struct stat facts{};
    TRY(Open(key, facts));
    return ObjectFacts{facts.st_size, ETagOf(facts)};
  }
  Result<std::vector<ListedObject>> List(const std::string& prefix, const std::stop_token&) override {
    std::vector<ListedObject> all;
    std::error_code error;
    std::filesystem::recursive_directory_iterator entries(folder_, error);
    for (; !error && entries != std::filesystem::recursive_directory_iterator(); entries.increment(error)) {
      std::string key = entries->path().string().substr(folder_.size() + 1);
      struct stat facts{};
      if (!key.starts_with(prefix) || ::stat(entries->path().c_str(), &facts) != 0 || !S_ISREG(facts.st_mode))
        continue;
      all.push_back({std::move(key), facts.st_size, ETagOf(facts)});
    }
    if (error) return FailErrno(folder_, error.value());
    std::ranges::sort(all, {}, &ListedObject::key);
    return all;
  }
  Status Write(const std::string& key, Bytes contents, const std::stop_token&) override {
    const std::string path = NameOf(key);
    TRY_STATUS(MakeFolders(path.substr(0, path.rfind('/'))));
    return WriteFileWhole(path, contents.text(), Durability::kSynced);
  }
  Status WriteFile(const std::string& key, const std::string& path, const std::stop_token& stop) override {
    return Write(key, TRY(ReadFile(path, uint64_t{1} << 40)), stop);
  }

 private:
  Result<UniqueFd> Open(const std::string& key, struct stat& facts) const {
    const std::string path = NameOf(key);
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
    if (!S_ISREG(facts.st_mode)) return Fail(ErrorCode::kInvalidArgument, path + ": not a file");
    return fd;
  }
  Result<Response> ReadNow(const Read& read) const {
    struct stat facts{};
    const UniqueFd fd = TRY(Open(read.key, facts));
    const std::string path = NameOf(read.key);
    Response response{.status = 200, .etag = ETagOf(facts), .total = facts.st_size};
    if (!read.etag.empty() && read.etag != response.etag)
      return Fail(ErrorCode::kCorrupt, path + ": the object was changed while it was read");
    const int64_t first = read.range ? std::min<int64_t>(read.range->offset, facts.st_size) : 0;
    const int64_t size = read.range ? std::min(read.range->size, facts.st_size - first) : facts.st_size;
    if (static_cast<uint64_t>(size) > read.max_bytes)
      return Fail(ErrorCode::kInvalidArgument, path + ": more bytes than were expected");
    response.body = Bytes::AllocateUninitialized(static_cast<size_t>(size));
    for (int64_t got = 0; got < size;) {
      const ssize_t now =
          ::pread(fd.get(), response.body.mutable_data() + got, static_cast<size_t>(size - got), first + got);
      if (now < 0) return FailErrno(path, errno);
      if (now == 0) return Fail(ErrorCode::kIo, path + ": has become shorter while it was read");
      got += now;
    }
    return response;
  }

  const std::string folder_;
};

}  // namespace

std::shared_ptr<ObjectSource> MakeFileSource(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return std::make_shared<FileSource>(std::move(folder));
}

}  // namespace weir::object
