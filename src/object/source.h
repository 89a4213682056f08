// Objects wherever they lie: files of a folder, a web server, S3 and stores that speak its protocol.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "object/aws_config.h"
#include "object/request_loop.h"

namespace weir::object {

struct ObjectFacts {
  int64_t size = 0;
  std::string etag;  // changes when the contents do; empty: the server names none
};

struct ListedObject {
  std::string key;
  int64_t size = 0;
  std::string etag;
};

// One bucket, one web server or one folder. Errors are those of RequestLoop. Thread-safe.
class ObjectSource {
 public:
  struct Read {
    std::string key;
    std::optional<Range> range;   // absent: all of it
    std::string etag;             // not empty: any other contents are kCorrupt, "changed"
    std::optional<int64_t> size;  // of what is read, where it is known
    uint64_t max_bytes = 256 << 20;
  };
  using Done = std::function<void(Result<Response>)>;
  virtual ~ObjectSource() = default;

  // For messages.
  virtual std::string NameOf(std::string_view key) const = 0;
  // Begins to read. `done` is called once, from any thread, also before this returns; it must not block.
  virtual void Start(Read read, Done done) = 0;
  virtual Result<ObjectFacts> Facts(const std::string& key, const std::stop_token& stop = {}) = 0;
  // All keys that begin with `prefix`, in byte order. kUnsupported for a web server, which has no listing.
  virtual Result<std::vector<ListedObject>> List(const std::string& prefix,
                                                 const std::stop_token& stop = {}) = 0;
  // Writes one object whole or not at all: readers see the old one or the new one.
  virtual Status Write(const std::string& key, Bytes contents, const std::stop_token& stop = {}) = 0;
  // The same from a file, in parts where it is larger than kPartBytes.
  virtual Status WriteFile(const std::string& key, const std::string& path,
                           const std::stop_token& stop = {}) = 0;
};

inline constexpr int64_t kPartBytes = 8 << 20;  // of a part that is written, and of a range that is read

// Reads one object: in one request up to kPartBytes, else in ranges side by side, all of the version of the
// first. `size` and `etag` as ObjectSource::Read has them; kInvalidArgument if it is larger than `max_bytes`.
// Blocks.
struct WholeRead {
  std::string key, etag;
  std::optional<int64_t> size;
  uint64_t max_bytes = 256 << 20;
};
Result<Bytes> ReadWhole(ObjectSource& source, const WholeRead& read, const std::stop_token& stop = {});
// Reads one range; as many bytes as there are.
Result<Response> ReadRange(ObjectSource& source, ObjectSource::Read read, const std::stop_token& stop = {});

// The sources of one command, one for each bucket, server and folder. Thread-safe.
class SourceSet {
 public:
  struct Options {
    Environment environment;  // empty: the process's
    int most_in_flight = 256;
    std::optional<int> retries;       // instead of the settings' own
    std::optional<Duration> timeout;  // of one request
    Seed seed{1};
  };
  // `clock` must outlive the sources.
  SourceSet(Options options, const Clock& clock);
  ~SourceSet();

  struct Located {
    std::shared_ptr<ObjectSource> source;
    std::string key;
  };
  // `url` is of s3, http or https, or a path. Credentials are looked for when the first request is sent.
  Result<Located> Open(const std::string& url) EXCLUDES(mutex_);

 private:
  const Options options_;
  const Clock& clock_;
  Mutex mutex_;
  std::vector<std::pair<std::string, std::shared_ptr<ObjectSource>>> sources_ GUARDED_BY(mutex_);
};

// Files below `folder`; keys are their paths in it.
std::shared_ptr<ObjectSource> MakeFileSource(std::string folder);
// `base` is "http://HOST[:PORT]".
std::shared_ptr<ObjectSource> MakeHttpSource(std::string base, std::unique_ptr<Transport> transport,
                                             const Clock& clock, RequestLoop::Options options,
                                             Duration timeout);
// `credentials` is null for unsigned requests. `wall` gives the time since 1970.
struct S3Options {
  std::string bucket;
  S3Settings settings;
  std::shared_ptr<CredentialFinder> credentials;
  std::function<Duration()> wall;
  RequestLoop::Options loop;
  Duration timeout = 60s;
};
std::shared_ptr<ObjectSource> MakeS3Source(S3Options options, std::unique_ptr<Transport> transport,
                                           const Clock& clock);

}  // namespace weir::object
