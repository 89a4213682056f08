#include "object/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/file.h"
#include "base/mutex.h"
#include "object/curl_transport.h"
#include "object/header_rules.h"
#include "object/url.h"

namespace weir::object {
namespace {

// Ranges that come in while one thread waits for all of them.
struct Gathered {
  Mutex mutex;
  CondVar changed;
  int open GUARDED_BY(mutex) = 0;
  std::optional<Error> error GUARDED_BY(mutex);
  std::vector<std::pair<int64_t, Bytes>> parts GUARDED_BY(mutex);
};

constexpr int kRangesAtOnce = 8;

// Returns nullopt when memory is out.
std::optional<Bytes> TryAllocate(size_t size) {
  const std::shared_ptr<std::byte[]> memory(new (std::nothrow) std::byte[size]);
  if (memory == nullptr) return std::nullopt;
  return Bytes::Wrap(memory, memory.get(), size);
}

Result<std::string> ReadHomeFile(const std::string& path) { return ReadTextFile(path); }

// One request with a transport of its own, for credentials.
Result<HttpResponse> AskOnce(HttpRequest request, const Clock& clock) {
  TRY_STATUS(CheckRequest(request));
  const std::unique_ptr<Transport> transport = MakeCurlTransport(clock, "");
  std::optional<TransportResult> result;
  const Instant end = clock.Now() + request.timeout + 1s;
  transport->Start(std::move(request), [&](TransportResult come) { result = std::move(come); });
  while (!result && clock.Now() < end) transport->Drive(end);
  if (!result) return Fail(ErrorCode::kDeadline, "no answer");
  if (!*result) return Fail(ErrorCode::kIo, result->error().message);
  return **std::move(result);
}

}  // namespace

Result<Response> ReadRange(ObjectSource& source, ObjectSource::Read read, const std::stop_token& stop) {
  struct Shared {
    Mutex mutex;
    CondVar changed;
    std::optional<Result<Response>> result GUARDED_BY(mutex);
  };
  const auto shared = std::make_shared<Shared>();
  source.Start(std::move(read), [shared](Result<Response> result) {
    MutexLock lock(shared->mutex);
    shared->result = std::move(result);
    shared->changed.NotifyAll();
  });
  const std::stop_callback wake(stop, [&shared] {
    MutexLock lock(shared->mutex);
    shared->changed.NotifyAll();
  });
  MutexLock lock(shared->mutex);
  while (!shared->result && !stop.stop_requested()) shared->changed.Wait(shared->mutex);
  if (!shared->result) return Fail(ErrorCode::kCancelled, "stopped");
  return *std::move(shared->result);
}

Result<Bytes> ReadWhole(ObjectSource& source, const WholeRead& read, const std::stop_token& stop) {
  const auto too_large = [&](int64_t size) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {} bytes are more than the limit of {}",
                                                         source.NameOf(read.key), size, read.max_bytes));
  };
  if (read.size && static_cast<uint64_t>(*read.size) > read.max_bytes) return too_large(*read.size);
  if (read.size && *read.size <= kPartBytes) {
    return TRY(ReadRange(source,
                         {.key = read.key,
                          .etag = read.etag,
                          .size = read.size,
                          .max_bytes = static_cast<uint64_t>(*read.size) + 1},
                         stop))
        .body;
  }
  // The first range tells how long the object is, and which version of it the others have to be.
  Response first = TRY(ReadRange(source,
                                 {.key = read.key,
                                  .range = Range{0, kPartBytes},
                                  .etag = read.etag,
                                  .max_bytes = std::max<uint64_t>(read.max_bytes, kPartBytes)},
                                 stop));
  if (!first.total && static_cast<int64_t>(first.body.size()) == kPartBytes)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: the server does not say how long the object is", source.NameOf(read.key)));
  const int64_t total = first.total.value_or(static_cast<int64_t>(first.body.size()));
  if (static_cast<uint64_t>(total) > read.max_bytes) return too_large(total);
  if (read.size && total != *read.size) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: the object was changed: {} bytes, and {} were listed",
                                                 source.NameOf(read.key), total, *read.size));
  }
  if (static_cast<int64_t>(first.body.size()) == total) return std::move(first.body);
  auto room = TryAllocate(static_cast<size_t>(total));  // the length is the server's word
  if (!room)
    return Fail(ErrorCode::kOverloaded,
                fmt::format("{}: no memory for its {} bytes", source.NameOf(read.key), total));
  Bytes whole = *std::move(room);
  std::memcpy(whole.mutable_data(), first.body.data(), first.body.size());
  const auto gathered = std::make_shared<Gathered>();
  const std::stop_callback wake(stop, [gathered] {
    MutexLock lock(gathered->mutex);
    if (!gathered->error) gathered->error = Error{ErrorCode::kCancelled, "stopped"};
    gathered->changed.NotifyAll();
  });
  int64_t next = static_cast<int64_t>(first.body.size()), taken = next;
  while (taken < total) {
    std::vector<std::pair<int64_t, Bytes>> come;
    bool may_start = false;
    {
      MutexLock lock(gathered->mutex);
      may_start = next < total && gathered->open < kRangesAtOnce;
      while (!may_start && gathered->parts.empty() && !gathered->error)
        gathered->changed.Wait(gathered->mutex);
      if (gathered->error) return std::unexpected(*gathered->error);
      come.swap(gathered->parts);
      if (may_start) ++gathered->open;
    }
    for (const auto& [offset, part] : come) {
      std::memcpy(whole.mutable_data() + offset, part.data(), part.size());
      taken += static_cast<int64_t>(part.size());
    }
    if (!may_start) continue;
    const int64_t offset = next, size = std::min(kPartBytes, total - next);
    next += size;
    source.Start({.key = read.key,
                  .range = Range{offset, size},
                  .etag = first.etag,
                  .size = size,
                  .max_bytes = static_cast<uint64_t>(size) + 1},
                 [gathered, offset](Result<Response> result) {
                   MutexLock lock(gathered->mutex);
                   --gathered->open;
                   if (result) {
                     gathered->parts.emplace_back(offset, std::move(result->body));
                   } else if (!gathered->error) {
                     gathered->error = result.error();
                   }
                   gathered->changed.NotifyAll();
                 });
  }
  return whole;
}

SourceSet::SourceSet(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

SourceSet::~SourceSet() = default;

Result<SourceSet::Located> SourceSet::Open(const std::string& url) {
  if (!IsObjectUrl(url)) {
    const size_t slash = url.rfind('/');
    const std::string folder = slash == url.npos ? "." : slash == 0 ? "/" : url.substr(0, slash);
    return Located{MakeFileSource(folder), url.substr(slash == url.npos ? 0 : slash + 1)};
  }
  const ObjectUrl parsed = TRY(ParseObjectUrl(url));
  const std::string base = ToText({parsed.scheme, parsed.host, ""});
  MutexLock lock(mutex_);
  const auto found =
      std::ranges::find(sources_, base, &std::pair<std::string, std::shared_ptr<ObjectSource>>::first);
  if (found != sources_.end()) return Located{found->second, parsed.key};
  Environment environment = options_.environment;
  if (!environment) {
    environment = [](const char* name) -> std::optional<std::string> {
      const char* value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
  }
  RequestLoop::Options loop{
      .depth = {.first = std::min(64, options_.most_in_flight), .least = 1, .most = options_.most_in_flight},
      .seed = options_.seed};
  if (options_.retries) loop.retries = *options_.retries;
  const Duration timeout = options_.timeout.value_or(60s);
  std::shared_ptr<ObjectSource> source;
  if (parsed.scheme == Scheme::kS3) {
    const S3Settings settings = TRY(ReadS3Settings(environment, ReadHomeFile));
    if (!options_.retries) loop.retries = settings.retries;
    const Clock& clock = clock_;
    std::shared_ptr<CredentialFinder> credentials;
    if (settings.is_signed) {
      credentials = std::make_shared<CredentialFinder>(
          environment, ReadHomeFile,
          [&clock](HttpRequest request) { return AskOnce(std::move(request), clock); }, settings.region);
    }
    source = MakeS3Source({.bucket = parsed.host,
                           .settings = settings,
                           .credentials = std::move(credentials),
                           .wall = WallTime,
                           .loop = loop,
                           .timeout = timeout},
                          MakeCurlTransport(clock_, settings.ca_bundle), clock_);
  } else {
    const std::string ca_bundle = environment("AWS_CA_BUNDLE").value_or("");
    source = MakeHttpSource(base.substr(0, base.size() - 1), MakeCurlTransport(clock_, ca_bundle), clock_,
                            loop, timeout);
  }
  sources_.emplace_back(base, source);
  return Located{std::move(source), parsed.key};
}

}  // namespace weir::object
