#include <fmt/format.h>

#include <utility>

#include "object/client.h"
#include "object/source.h"
#include "object/url.h"

namespace weir::object {
namespace {

class HttpBuilder final : public RequestBuilder {
 public:
  HttpBuilder(std::string base, Duration timeout) : base_(std::move(base)), timeout_(timeout) {}

  Result<HttpRequest> Build(const Operation& operation) override {
    HttpRequest request{.method = operation.method,
                        .url = base_ + "/" + operation.key,
                        .max_bytes = operation.max_bytes,
                        .timeout = timeout_,
                        .follow_redirects = true};
    if (operation.range) {
      request.headers.emplace_back("Range", fmt::format("bytes={}-{}", operation.range->offset,
                                                        operation.range->offset + operation.range->size - 1));
    }
    return request;
  }
  std::string NameOf(const Operation& operation) const override {
    return base_ + "/" + operation.key.substr(0, operation.key.find('?'));
  }

 private:
  const std::string base_;
  const Duration timeout_;
};

class HttpSource final : public ObjectSource {
 public:
  HttpSource(std::string base, std::unique_ptr<Transport> transport, const Clock& clock,
             RequestLoop::Options options, Duration timeout)
      : base_(std::move(base)),
        client_(std::move(transport), std::make_unique<HttpBuilder>(base_, timeout), clock, options) {}

  std::string NameOf(std::string_view key) const override {
    return fmt::format("{}/{}", base_, key.substr(0, key.find('?')));
  }
  void Start(Read read, Done done) override {
    client_.Submit({.key = std::move(read.key),
                    .range = read.range,
                    .etag = std::move(read.etag),
                    .size = read.size,
                    .max_bytes = read.max_bytes,
                    .may_hedge = true,
                    .done = std::move(done)});
  }
  Result<ObjectFacts> Facts(const std::string& key, const std::stop_token& stop) override {
    const Response response = TRY(client_.Do({.method = "HEAD", .key = key}, stop));
    if (!response.total)
      return Fail(ErrorCode::kUnsupported, fmt::format("{}: no Content-Length", NameOf(key)));
    return ObjectFacts{*response.total, response.etag};
  }
  Result<std::vector<ListedObject>> List(const std::string& prefix, const std::stop_token&) override {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: a web server has no listing: name the files, or a list of them with --list",
                            NameOf(prefix)));
  }
  Status Write(const std::string& key, Bytes, const std::stop_token&) override { return NoWriting(key); }
  Status WriteFile(const std::string& key, const std::string&, const std::stop_token&) override {
    return NoWriting(key);
  }

 private:
  Status NoWriting(const std::string& key) const {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: a web server is not written to: write to s3:// or a folder", NameOf(key)));
  }

  const std::string base_;
  Client client_;
};

}  // namespace

std::shared_ptr<ObjectSource> MakeHttpSource(std::string base, std::unique_ptr<Transport> transport,
                                             const Clock& clock, RequestLoop::Options options,
                                             Duration timeout) {
  return std::make_shared<HttpSource>(std::move(base), std::move(transport), clock, options, timeout);
}

}  // namespace weir::object
