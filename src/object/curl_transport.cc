#include "object/curl_transport.h"

#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file.h"

namespace weir::object {
namespace {

constexpr long kMaxRedirects = 5, kKeptConnections = 512;
constexpr Duration kConnectTimeout = 10s;
constexpr long kStallSeconds = 20;  // without a byte
constexpr uint64_t kReservedAtOnce = 64 << 20;

struct Transfer {
  uint64_t id = 0;
  CURL* curl = nullptr;
  curl_slist* headers = nullptr;
  HttpRequest request;
  Transport::Done done;
  HttpResponse response;
  std::shared_ptr<std::string> body = std::make_shared<std::string>();
  size_t sent = 0;
  bool too_large = false;
  char words[CURL_ERROR_SIZE] = "";

  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() { curl_slist_free_all(headers); }
};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  return text;
}

size_t TakeHeader(char* data, size_t size, size_t count, void* to) {
  Transfer& transfer = *static_cast<Transfer*>(to);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {  // of a redirect's next response too
    transfer.response.headers.clear();
    transfer.body->clear();
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return line.size();
  std::string name(line.substr(0, colon));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::string_view value = Trimmed(line.substr(colon + 1));
  uint64_t length = 0;
  if (name == "content-length" && transfer.request.method != "HEAD" &&
      std::from_chars(value.data(), value.data() + value.size(), length).ec == std::errc())
    transfer.body->reserve(std::min({length, transfer.request.max_bytes, kReservedAtOnce}));
  transfer.response.headers[std::move(name)] = value;
  return line.size();
}

size_t TakeBody(char* data, size_t size, size_t count, void* to) {
  Transfer& transfer = *static_cast<Transfer*>(to);
  const size_t bytes = size * count;
  if (bytes >
      transfer.request.max_bytes - std::min<uint64_t>(transfer.body->size(), transfer.request.max_bytes)) {
    transfer.too_large = true;
    return 0;
  }
  transfer.body->append(data, bytes);
  return bytes;
}

size_t GiveBody(char* data, size_t size, size_t count, void* from) {
  Transfer& transfer = *static_cast<Transfer*>(from);
  const size_t bytes = std::min(size * count, transfer.request.body.size() - transfer.sent);
  if (bytes > 0) std::memcpy(data, transfer.request.body.data() + transfer.sent, bytes);
  transfer.sent += bytes;
  return bytes;
}

int RewindBody(void* from, curl_off_t offset, int origin) {
  Transfer& transfer = *static_cast<Transfer*>(from);
  if (origin != SEEK_SET || offset < 0 || static_cast<size_t>(offset) > transfer.request.body.size())
    return CURL_SEEKFUNC_FAIL;
  transfer.sent = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

TransportFault::Kind KindOf(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return TransportFault::Kind::kMayPass;
    default:
      return TransportFault::Kind::kFinal;
  }
}

// Told of ready sockets one by one: curl_multi_perform would look at every transfer under way each time.
class CurlTransport final : public Transport {
 public:
  CurlTransport(const Clock& clock, std::string ca_bundle)
      : clock_(clock), ca_bundle_(std::move(ca_bundle)), multi_(MakeMulti()) {
    CHECK(poll_.valid() && woken_.valid());
    epoll_event event{.events = EPOLLIN, .data = {.fd = woken_.get()}};
    CHECK(epoll_ctl(poll_.get(), EPOLL_CTL_ADD, woken_.get(), &event) == 0);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, WatchSocket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, SetTimer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  }

  ~CurlTransport() override {
    for (auto& [curl, transfer] : transfers_) {
      curl_multi_remove_handle(multi_, curl);
      curl_easy_cleanup(curl);
    }
    for (CURL* curl : spare_) curl_easy_cleanup(curl);
    curl_multi_cleanup(multi_);
  }

  uint64_t Start(HttpRequest request, Done done) override {
    auto owned = std::make_unique<Transfer>();
    Transfer& transfer = *owned;
    transfer.id = ++last_;
    transfer.request = std::move(request);
    transfer.done = std::move(done);
    transfer.curl = TakeHandle();
    SetUp(transfer);
    by_id_[transfer.id] = transfer.curl;
    transfers_[transfer.curl] = std::move(owned);
    curl_multi_add_handle(multi_, transfer.curl);
    return transfer.id;
  }

  void Cancel(uint64_t id) override {
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return;
    CURL* const curl = found->second;
    curl_multi_remove_handle(multi_, curl);
    Release(curl);
  }

  void Drive(Instant until) override {
    RingIfDue();
    if (CallDone()) return;
    const Instant wake = std::min(until, due_.value_or(until));
    // Up, not to the nearest: a time-out of 0 before each of many timers would keep a core busy.
    const double left_ms = std::clamp(std::ceil(Milliseconds(wake - clock_.Now())), 0.0, 60e3);
    std::array<epoll_event, 64> events;
    const int count =
        epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(left_ms));
    for (int i = 0; i < count; ++i) Tell(events[static_cast<size_t>(i)]);
    RingIfDue();
    CallDone();
  }

  void Wake() override { eventfd_write(woken_.get(), 1); }

 private:
  static int WatchSocket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
    auto& transport = *static_cast<CurlTransport*>(self);
    const int poll = transport.poll_.get();
    if (what == CURL_POLL_REMOVE) {
      epoll_ctl(poll, EPOLL_CTL_DEL, socket, nullptr);  // it may be closed already
      return 0;
    }
    epoll_event event{.events = 0, .data = {.fd = socket}};
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) event.events |= EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) event.events |= EPOLLOUT;
    if (known == nullptr) curl_multi_assign(transport.multi_, socket, &transport);  // a mark, no more
    if (epoll_ctl(poll, known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event) == 0) return 0;
    return epoll_ctl(poll, known == nullptr ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
  }
  static int SetTimer(CURLM*, long timeout_ms, void* self) {
    auto& transport = *static_cast<CurlTransport*>(self);
    transport.due_ = timeout_ms < 0
                         ? std::nullopt
                         : std::optional(transport.clock_.Now() + std::chrono::milliseconds(timeout_ms));
    return 0;
  }
  void RingIfDue() {
    if (!due_ || clock_.Now() < *due_) return;
    due_.reset();
    int running = 0;
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
  void Tell(const epoll_event& event) {
    if (event.data.fd == woken_.get()) {
      eventfd_t ignored = 0;
      eventfd_read(woken_.get(), &ignored);
      return;
    }
    int ready = 0, running = 0;
    if ((event.events & EPOLLIN) != 0) ready |= CURL_CSELECT_IN;
    if ((event.events & EPOLLOUT) != 0) ready |= CURL_CSELECT_OUT;
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) ready |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi_, event.data.fd, ready, &running);
  }

  static CURLM* MakeMulti() {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    CURLM* const multi = curl_multi_init();
    CHECK(multi != nullptr);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, kKeptConnections);
    return multi;
  }

  CURL* TakeHandle() {
    if (spare_.empty()) {
      CURL* const curl = curl_easy_init();
      CHECK(curl != nullptr);
      return curl;
    }
    CURL* const curl = spare_.back();
    spare_.pop_back();
    curl_easy_reset(curl);
    return curl;
  }

  void SetUp(Transfer& t) {
    CURL* const curl = t.curl;
    const HttpRequest& request = t.request;
    // An empty "Expect:" spares the wait for 100 (Continue).
    t.headers = curl_slist_append(t.headers, "Expect:");
    for (const auto& [name, value] : request.headers) {
      const std::string line = value.empty() ? name + ";" : name + ": " + value;
      t.headers = curl_slist_append(t.headers, line.c_str());
    }
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, t.headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "weir");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::max(1.0, Milliseconds(request.timeout))));
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(Milliseconds(kConnectTimeout)));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t.words);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, TakeHeader);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &t);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &t);
    if (request.follow_redirects) {
      curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
      curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
    }
    if (!request.use_proxy) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    if (!ca_bundle_.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_bundle_.c_str());
    if (request.method == "HEAD") {
      curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (request.method == "PUT" || request.method == "POST") {
      curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
      curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
      curl_easy_setopt(curl, CURLOPT_READFUNCTION, GiveBody);
      curl_easy_setopt(curl, CURLOPT_READDATA, &t);
      curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, RewindBody);
      curl_easy_setopt(curl, CURLOPT_SEEKDATA, &t);
      curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    } else if (request.method != "GET") {
      curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
  }

  std::unique_ptr<Transfer> Release(CURL* curl) {
    auto node = transfers_.extract(curl);
    std::unique_ptr<Transfer> transfer = std::move(node.mapped());
    by_id_.erase(transfer->id);
    spare_.push_back(curl);
    return transfer;
  }

  // Returns whether there was any.
  bool CallDone() {
    bool any = false;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      any = true;
      CURL* const curl = message->easy_handle;
      const CURLcode code = message->data.result;
      long status = 0;
      curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
      curl_multi_remove_handle(multi_, curl);
      const std::unique_ptr<Transfer> transfer = Release(curl);
      if (code != CURLE_OK) {
        TransportFault fault{KindOf(code), transfer->words[0] ? transfer->words : curl_easy_strerror(code)};
        if (transfer->too_large) fault = {TransportFault::Kind::kTooLarge, "more bytes than were expected"};
        transfer->done(std::unexpected(std::move(fault)));
        continue;
      }
      transfer->response.status = static_cast<int>(status);
      auto* const data = reinterpret_cast<std::byte*>(transfer->body->data());
      const size_t size = transfer->body->size();
      transfer->response.body = Bytes::Wrap(std::move(transfer->body), data, size);
      transfer->done(std::move(transfer->response));
    }
    return any;
  }

  const Clock& clock_;
  const std::string ca_bundle_;
  const UniqueFd poll_{epoll_create1(EPOLL_CLOEXEC)}, woken_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  CURLM* const multi_;
  std::optional<Instant> due_;  // of the library's timers
  std::unordered_map<CURL*, std::unique_ptr<Transfer>> transfers_;
  std::unordered_map<uint64_t, CURL*> by_id_;
  std::vector<CURL*> spare_;
  uint64_t last_ = 0;
};

}  // namespace

std::unique_ptr<Transport> MakeCurlTransport(const Clock& clock, const std::string& ca_bundle) {
  return std::make_unique<CurlTransport>(clock, ca_bundle);
}

}  // namespace weir::object
