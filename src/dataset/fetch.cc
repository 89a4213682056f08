#include "dataset/fetch.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <expected>
#include <memory>

#include "base/mutex.h"

namespace weir::dataset {
namespace {

constexpr Duration kConnectTimeout = 10s, kFirstWait = 1s, kLongestWait = 60s;
constexpr long kMaxRedirects = 5;

// The part of a body that has come.
struct Body {
  std::string bytes;
  uint64_t max_bytes = 0;
  bool too_large = false;
};

size_t Take(char* data, size_t size, size_t count, void* argument) {
  Body& body = *static_cast<Body*>(argument);
  const size_t bytes = size * count;
  if (bytes > body.max_bytes - body.bytes.size()) {
    body.too_large = true;
    return 0;  // ends the transfer
  }
  body.bytes.append(data, bytes);
  return bytes;
}

// Asked several times a second; anything but 0 ends the transfer.
int EndWhenStopped(void* argument, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::stop_token*>(argument)->stop_requested() ? 1 : 0;
}

// False when `stop` came first.
bool WaitFor(Duration wait, const std::stop_token& stop) {
  const SteadyClock clock;
  const Instant end = clock.Now() + wait;
  Mutex mutex;
  CondVar changed;
  const std::stop_callback wake(stop, [&] {
    MutexLock lock(mutex);
    changed.NotifyAll();
  });
  MutexLock lock(mutex);
  while (!stop.stop_requested() && clock.Now() < end) changed.WaitUntil(mutex, end);
  return !stop.stop_requested();
}

struct Failure {
  image::Reject reject;
  bool may_pass = false;
};

bool MayPass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
      return true;
    default:
      return false;
  }
}

std::expected<std::string, Failure> TryOnce(const std::string& url, uint64_t max_bytes,
                                            const FetchOptions& options) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl)
    return std::unexpected(Failure{{image::RejectReason::kUnreachable, "no memory for a connection"}, true});
  const auto milliseconds = [](Duration d) { return static_cast<long>(Milliseconds(d)); };
  Body body{.max_bytes = max_bytes};
  char words[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_MAXREDIRS, kMaxRedirects);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, milliseconds(options.timeout));
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS, milliseconds(kConnectTimeout));
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "weir");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, words);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, EndWhenStopped);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &options.stop);
  const CURLcode code = curl_easy_perform(curl.get());
  if (body.too_large) {
    return std::unexpected(Failure{
        {image::RejectReason::kTooManyBytes, fmt::format("more bytes than the limit of {}", max_bytes)},
        false});
  }
  if (code != CURLE_OK) {
    const char* why = words[0] != '\0' ? words : curl_easy_strerror(code);
    return std::unexpected(Failure{{image::RejectReason::kUnreachable, why}, MayPass(code)});
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return std::move(body.bytes);
  return std::unexpected(
      Failure{{image::RejectReason::kUnreachable, fmt::format("the server answered {}", status)},
              status == 408 || status == 429 || status >= 500});
}

}  // namespace

image::Accepted<Bytes> Fetch(const std::string& url, uint64_t max_bytes, const FetchOptions& options) {
  Duration wait = kFirstWait;
  for (int left = options.retries;; --left) {
    auto body = TryOnce(url, max_bytes, options);
    if (body) return Bytes::Copy(*body);
    if (!body.error().may_pass || left <= 0 || !WaitFor(wait, options.stop))
      return std::unexpected(std::move(body).error().reject);
    wait = std::min(2 * wait, kLongestWait);
  }
}

}  // namespace weir::dataset
