#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "object/client.h"
#include "object/listing.h"
#include "object/source.h"
#include "object/url.h"
#include "object/xml.h"

namespace weir::object {
namespace {

constexpr const char* kEmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr int64_t kMostParts = 10'000;
constexpr uint64_t kMostAnswerBytes = 1 << 20;  // of an answer that tells how a write went
constexpr int kPartsAtOnce = 4;                 // of one object, so that few lie in memory

std::string RangeText(const Range& range) {
  return fmt::format("bytes={}-{}", range.offset, range.offset + range.size - 1);
}

bool IsRegion(std::string_view text) {
  return !text.empty() && text.size() < 64 &&
         std::ranges::all_of(
             text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

class S3Builder final : public RequestBuilder {
 public:
  S3Builder(const S3Options& options) : options_(options), region_(options.settings.region) {}

  Result<HttpRequest> Build(const Operation& operation) override {
    HttpRequest request{.method = operation.method,
                        .headers = operation.headers,
                        .body = operation.body,
                        .max_bytes = operation.max_bytes,
                        .timeout = options_.timeout};
    if (operation.range) request.headers.emplace_back("Range", RangeText(*operation.range));
    if (!operation.etag.empty() && operation.method == "GET")
      request.headers.emplace_back("If-Match", operation.etag);
    const auto [base, host, path] = AddressOf(operation);
    const std::string query = CanonicalQuery(operation.query);
    request.url = base + path + (query.empty() ? "" : "?" + query);
    if (options_.credentials == nullptr) return request;
    const Credentials credentials = TRY(options_.credentials->Get(options_.wall()));
    const std::string hash = operation.body.empty()      ? kEmptyHash
                             : base.starts_with("https") ? "UNSIGNED-PAYLOAD"
                                                         : Sha256Hex(operation.body.text());
    const SignScope scope{SignTimestamp(options_.wall()), region_, "s3"};
    request.headers.emplace_back("x-amz-content-sha256", hash);
    request.headers.emplace_back("x-amz-date", scope.timestamp);
    if (!credentials.session_token.empty())
      request.headers.emplace_back("x-amz-security-token", credentials.session_token);
    SignRequest signing{.method = operation.method,
                        .path = path,
                        .query = operation.query,
                        .headers = request.headers,
                        .payload_hash = hash};
    signing.headers.emplace_back("host", host);
    request.headers.emplace_back("Authorization", signer_.Authorization(signing, scope, credentials));
    return request;
  }

  bool LearnFrom(const Operation&, const HttpResponse& response) override {
    const auto found = response.headers.find("x-amz-bucket-region");
    const bool may_move = response.status == 301 || response.status == 307 || response.status == 400;
    if (!may_move || found == response.headers.end() || found->second == region_ || !IsRegion(found->second))
      return false;
    region_ = found->second;
    return true;
  }

  std::string NameOf(const Operation& operation) const override {
    return ToText({Scheme::kS3, operation.host, EscapeForTerminal(operation.key)});
  }

 private:
  struct Address {
    std::string base, host, path;
  };
  Address AddressOf(const Operation& operation) const {
    const std::string key = EncodeUri(operation.key, Slash::kKeep);
    if (const std::string& endpoint = options_.settings.endpoint; !endpoint.empty())
      return {endpoint, endpoint.substr(endpoint.find("://") + 3), "/" + operation.host + "/" + key};
    // A name with dots fits no certificate of *.s3.amazonaws.com.
    const std::string host = fmt::format("s3.{}.amazonaws.com", region_);
    if (operation.host.contains('.')) return {"https://" + host, host, "/" + operation.host + "/" + key};
    return {"https://" + operation.host + "." + host, operation.host + "." + host, "/" + key};
  }

  const S3Options options_;
  std::string region_;
  Signer signer_;
};

Result<Bytes> ReadPart(int fd, const std::string& path, int64_t offset, int64_t size) {
  Bytes bytes = Bytes::AllocateUninitialized(static_cast<size_t>(size));
  for (int64_t got = 0; got < size;) {
    const ssize_t now =
        ::pread(fd, bytes.mutable_data() + got, static_cast<size_t>(size - got), offset + got);
    if (now < 0) return FailErrno(path, errno);
    if (now == 0) return Fail(ErrorCode::kIo, fmt::format("{}: has become shorter while it was read", path));
    got += now;
  }
  return bytes;
}

class S3Source final : public ObjectSource {
 public:
  S3Source(S3Options options, std::unique_ptr<Transport> transport, const Clock& clock)
      : bucket_(options.bucket),
        client_(std::move(transport), std::make_unique<S3Builder>(options), clock, options.loop,
                [finder = options.credentials, wall = options.wall]() -> Status {
                  if (finder != nullptr) TRY_STATUS(finder->Get(wall()));
                  return {};
                }) {}

  std::string NameOf(std::string_view key) const override {
    return ToText({Scheme::kS3, bucket_, EscapeForTerminal(key)});
  }

  void Start(Read read, Done done) override {
    client_.Submit({.host = bucket_,
                    .key = std::move(read.key),
                    .range = read.range,
                    .etag = std::move(read.etag),
                    .size = read.size,
                    .max_bytes = read.max_bytes,
                    .may_hedge = true,
                    .done = std::move(done)});
  }

  Result<ObjectFacts> Facts(const std::string& key, const std::stop_token& stop) override {
    const Response response = TRY(client_.Do({.method = "HEAD", .host = bucket_, .key = key}, stop));
    if (!response.total) return Fail(ErrorCode::kCorrupt, fmt::format("{}: no Content-Length", NameOf(key)));
    return ObjectFacts{*response.total, response.etag};
  }

  Result<std::vector<ListedObject>> List(const std::string& prefix, const std::stop_token& stop) override {
    BucketListing listing(prefix);
    std::string next;
    do {
      Operation operation{.host = bucket_,
                          .query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix}},
                          .max_bytes = kMostPageBytes,
                          .may_hedge = true};
      if (!next.empty()) operation.query.emplace_back("continuation-token", next);
      const Response response = TRY(client_.Do(std::move(operation), stop));
      next = TRY_CONTEXT(listing.Take(response.body.text()), NameOf(prefix));
    } while (!next.empty());
    return TRY_CONTEXT(listing.Finish(), NameOf(prefix));
  }

  Status Write(const std::string& key, Bytes contents, const std::stop_token& stop) override {
    TRY_STATUS(client_.Do({.method = "PUT",
                           .host = bucket_,
                           .key = key,
                           .body = std::move(contents),
                           .max_bytes = kMostAnswerBytes},
                          stop));
    return {};
  }

  Status WriteFile(const std::string& key, const std::string& path, const std::stop_token& stop) override {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat facts{};
    if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
    if (facts.st_size <= kPartBytes) return Write(key, TRY(ReadPart(fd.get(), path, 0, facts.st_size)), stop);
    const std::string id = TRY(Begin(key, stop));
    const Status written = WriteParts(key, id, fd.get(), path, facts.st_size, stop);
    if (written) return {};
    // The parts cost money as long as they lie there. A failure of this request leaves them to the bucket's
    // own rule.
    const auto ignored = client_.Do({.method = "DELETE",
                                     .host = bucket_,
                                     .key = key,
                                     .query = {{"uploadId", id}},
                                     .max_bytes = kMostAnswerBytes});
    return written;
  }

 private:
  Result<std::string> Begin(const std::string& key, const std::stop_token& stop) {
    const Response response = TRY(client_.Do({.method = "POST",
                                              .host = bucket_,
                                              .key = key,
                                              .query = {{"uploads", ""}},
                                              .max_bytes = kMostAnswerBytes},
                                             stop));
    const auto texts = TRY_CONTEXT(ParseXml(response.body.text()), NameOf(key));
    std::string id;  // some stores give the outer element another name
    for (const auto& [path, text] : texts) {
      if (path.ends_with("/UploadId")) id = text;
    }
    if (id.empty())
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: an upload without a number", NameOf(key)));
    return id;
  }

  Status WriteParts(const std::string& key, const std::string& id, int fd, const std::string& path,
                    int64_t size, const std::stop_token& stop) {
    const int64_t part_bytes = std::max(kPartBytes, (size + kMostParts - 1) / kMostParts);
    const int64_t parts = (size + part_bytes - 1) / part_bytes;
    struct Shared {
      Mutex mutex;
      CondVar changed;
      std::map<int64_t, std::string> etags GUARDED_BY(mutex);
      int open GUARDED_BY(mutex) = 0;
      std::optional<Error> error GUARDED_BY(mutex);
    };
    const auto shared = std::make_shared<Shared>();
    const std::stop_callback wake(stop, [shared] {
      MutexLock lock(shared->mutex);
      if (!shared->error) shared->error = Error{ErrorCode::kCancelled, "stopped"};
      shared->changed.NotifyAll();
    });
    for (int64_t part = 0; part < parts; ++part) {
      {
        MutexLock lock(shared->mutex);
        while (shared->open >= kPartsAtOnce && !shared->error) shared->changed.Wait(shared->mutex);
        if (shared->error) return std::unexpected(*shared->error);
        ++shared->open;
      }
      const int64_t offset = part * part_bytes;
      Bytes body = TRY(ReadPart(fd, path, offset, std::min(part_bytes, size - offset)));
      client_.Submit({.method = "PUT",
                      .host = bucket_,
                      .key = key,
                      .query = {{"partNumber", std::to_string(part + 1)}, {"uploadId", id}},
                      .body = std::move(body),
                      .max_bytes = kMostAnswerBytes,
                      .done = [shared, part](Result<Response> result) {
                        MutexLock lock(shared->mutex);
                        --shared->open;
                        if (result) {
                          shared->etags[part + 1] = result->etag;
                        } else if (!shared->error) {
                          shared->error = result.error();
                        }
                        shared->changed.NotifyAll();
                      }});
    }
    std::string document = "<CompleteMultipartUpload>";
    {
      MutexLock lock(shared->mutex);
      while (shared->open > 0 && !shared->error) shared->changed.Wait(shared->mutex);
      if (shared->error) return std::unexpected(*shared->error);
      for (const auto& [number, etag] : shared->etags) {
        std::string quoted;  // an ETag's quotes
        for (const char c : etag)
          quoted += c == '"' ? "&quot;" : c == '<' || c == '&' ? "" : std::string(1, c);
        document += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, quoted);
      }
    }
    document += "</CompleteMultipartUpload>";
    const Response response = TRY(client_.Do({.method = "POST",
                                              .host = bucket_,
                                              .key = key,
                                              .query = {{"uploadId", id}},
                                              .headers = {{"Content-Type", "application/xml"}},
                                              .body = Bytes::Copy(document),
                                              .max_bytes = kMostAnswerBytes},
                                             stop));
    // Success is known only from the document: the status is sent before the work is done.
    const auto texts = TRY_CONTEXT(ParseXml(response.body.text()), NameOf(key));
    if (!FindText(texts, "CompleteMultipartUploadResult/ETag").empty()) return {};
    return Fail(ErrorCode::kIo,
                fmt::format("{}: the parts were not joined: {}", NameOf(key),
                            CutToOneLine(EscapeForTerminal(FindText(texts, "Error/Code")), 80)));
  }

  const std::string bucket_;
  Client client_;
};

}  // namespace

std::shared_ptr<ObjectSource> MakeS3Source(S3Options options, std::unique_ptr<Transport> transport,
                                           const Clock& clock) {
  return std::make_shared<S3Source>(std::move(options), std::move(transport), clock);
}

}  // namespace weir::object
