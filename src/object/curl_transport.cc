#include "object/curl_transport.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file.h"
#include "object/plain_connection.h"

namespace weir::object {
namespace {

constexpr long kMaxRedirects = 5, kKeptConnections = 512;
constexpr Duration kConnectTimeout = 10s;
constexpr long kStallSeconds = 20;      // without a byte
constexpr Duration kBetweenLooks = 1s;  // at the time-outs of plain connections
constexpr uint64_t kReservedAtOnce = 64 << 20;
constexpr size_t kMostHeaderBytes = 256 << 10;  // of all answers to one request

struct Transfer {
  uint64_t id = 0;
  CURL* curl = nullptr;              // carries it, or connects for it
  PlainConnection* plain = nullptr;  // carries it
  bool connects = false;             // curl only connects
  const Clock* clock = nullptr;
  std::optional<Instant> last_bytes;  // none have come yet
  Instant begun, due;                 // of a plain connection
  curl_slist* headers = nullptr;
  HttpRequest request;
  Transport::Done done;
  HttpResponse response;
  std::shared_ptr<std::string> body = std::make_shared<std::string>();
  size_t sent = 0, header_bytes = 0;
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
  transfer.last_bytes = transfer.clock->Now();
  transfer.header_bytes += line.size();
  if (transfer.header_bytes > kMostHeaderBytes) {
    transfer.too_large = true;
    return 0;
  }
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
  transfer.last_bytes = transfer.clock->Now();
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

const TransportFault kTooLarge{TransportFault::Kind::kTooLarge, "more bytes than were expected"};

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

// Plain requests go over connections of our own, which curl opens. Curl is told of its ready sockets one by
// one: curl_multi_perform would look at every transfer under way each time.
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
    for (auto& [id, transfer] : transfers_) {
      if (transfer->curl == nullptr) continue;
      curl_multi_remove_handle(multi_, transfer->curl);
      curl_easy_cleanup(transfer->curl);
    }
    for (CURL* curl : spare_) curl_easy_cleanup(curl);
    curl_multi_cleanup(multi_);
  }

  uint64_t Start(HttpRequest request, Done done) override {
    auto owned = std::make_unique<Transfer>();
    Transfer& transfer = *owned;
    transfer.id = ++last_;
    transfer.clock = &clock_;
    transfer.request = std::move(request);
    transfer.done = std::move(done);
    transfers_[transfer.id] = std::move(owned);
    if (const auto target = PlainWay(transfer.request)) {
      Begin(transfer, *target);
    } else {
      LeaveToCurl(transfer);
    }
    return transfer.id;
  }

  void Cancel(uint64_t id) override {
    if (!transfers_.contains(id)) return;
    const std::unique_ptr<Transfer> transfer = Release(id);
    if (transfer->plain != nullptr) Close(*transfer->plain);
  }

  std::optional<Instant> LastBytes(uint64_t id) const override { return transfers_.at(id)->last_bytes; }

  void Drive(Instant until) override {
    RingIfDue();
    if (CallDone()) return;
    Instant wake = std::min(until, due_.value_or(until));
    if (!carried_.empty()) wake = std::min(wake, next_look_);
    // Up, not to the nearest: a time-out of 0 before each of many timers would keep a core busy.
    const double left_ms = std::clamp(std::ceil(Milliseconds(wake - clock_.Now())), 0.0, 60e3);
    std::array<epoll_event, 64> events;
    const int count =
        epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(left_ms));
    for (int i = 0; i < count; ++i) Tell(events[static_cast<size_t>(i)]);
    RingIfDue();
    CallDone();
    EndLate();
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
    if (const auto plain = plain_.find(event.data.fd); plain != plain_.end())
      return TakePlain(*plain->second);
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
    curl_slist_free_all(std::exchange(t.headers, nullptr));  // of the handle that connected
    t.headers = curl_slist_append(t.headers, "Expect:");
    for (const auto& [name, value] : request.headers) {
      const std::string line = value.empty() ? name + ";" : name + ": " + value;
      t.headers = curl_slist_append(t.headers, line.c_str());
    }
    curl_easy_setopt(curl, CURLOPT_PRIVATE, &t);
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    // A request that was encrypted does not go on in the open.
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR,
                     request.url.starts_with("https://") ? "https" : "http,https");
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

  // Nothing but the caller knows the transfer from then on; curl's handle is free for the next one.
  std::unique_ptr<Transfer> Release(uint64_t id) {
    auto node = transfers_.extract(id);
    std::unique_ptr<Transfer> transfer = std::move(node.mapped());
    FreeHandle(*transfer);
    if (transfer->plain != nullptr) carried_.erase(transfer->plain);
    return transfer;
  }
  void FreeHandle(Transfer& transfer) {
    if (transfer.curl == nullptr) return;
    curl_multi_remove_handle(multi_, transfer.curl);
    spare_.push_back(std::exchange(transfer.curl, nullptr));
  }
  void Fail(uint64_t id, TransportFault fault) { Release(id)->done(std::unexpected(std::move(fault))); }

  void LeaveToCurl(Transfer& transfer) {
    transfer.curl = TakeHandle();
    SetUp(transfer);
    curl_multi_add_handle(multi_, transfer.curl);
  }

  // Returns where the request goes over a connection of our own; nullopt: curl carries it.
  std::optional<PlainTarget> PlainWay(const HttpRequest& request) const {
    if (has_proxy_ && request.use_proxy) return std::nullopt;
    auto target = PlainTargetOf(request);
    if (target && for_curl_.contains(std::string(target->authority))) return std::nullopt;
    return target;
  }

  void Begin(Transfer& transfer, const PlainTarget& target) {
    transfer.due = clock_.Now() + transfer.request.timeout;
    while (true) {
      const auto found =
          std::ranges::find(idle_.rbegin(), idle_.rend(), target.authority, &PlainConnection::authority);
      if (found == idle_.rend()) break;
      PlainConnection& plain = **found;
      idle_.erase(std::next(found).base());
      if (plain.IsQuiet()) return Carry(plain, transfer, target);
      Close(plain);
    }
    // Names, addresses to try and the time that it may take are curl's.
    transfer.connects = true;
    transfer.curl = TakeHandle();
    SetUp(transfer);
    curl_easy_setopt(transfer.curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_multi_add_handle(multi_, transfer.curl);
  }

  void Carry(PlainConnection& plain, Transfer& transfer, const PlainTarget& target) {
    if (!plain.Send(transfer.request, target)) {
      Close(plain);
      return LeaveToCurl(transfer);
    }
    if (carried_.empty()) next_look_ = clock_.Now() + kBetweenLooks;
    transfer.plain = &plain;
    transfer.begun = clock_.Now();
    carried_[&plain] = &transfer;
  }

  // The connection that curl has made, under a descriptor of our own: curl closes its.
  void Connected(Transfer& transfer) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    curl_easy_getinfo(transfer.curl, CURLINFO_ACTIVESOCKET, &socket);
    UniqueFd own(socket == CURL_SOCKET_BAD ? -1 : ::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    FreeHandle(transfer);
    transfer.connects = false;
    const auto target = PlainTargetOf(transfer.request);
    epoll_event event{.events = EPOLLIN, .data = {.fd = own.get()}};
    if (!own.valid() || epoll_ctl(poll_.get(), EPOLL_CTL_ADD, own.get(), &event) != 0)
      return LeaveToCurl(transfer);
    auto plain = std::make_unique<PlainConnection>(std::move(own), target->authority);
    PlainConnection& known = *plain;
    plain_[known.fd()] = std::move(plain);
    Carry(known, transfer, *target);
  }

  void Close(PlainConnection& plain) {
    std::erase(idle_, &plain);
    carried_.erase(&plain);
    plain_.erase(plain.fd());  // which closes it; the poll forgets it with that
  }

  void TakePlain(PlainConnection& plain) {
    const auto found = carried_.find(&plain);
    if (found == carried_.end()) return Close(plain);  // the server has closed it, or sends unasked
    Transfer& transfer = *found->second;
    transfer.last_bytes = clock_.Now();
    switch (plain.Read()) {
      case PlainConnection::Progress::kUnderWay:
        return;
      case PlainConnection::Progress::kWhole: {
        HttpResponse response = plain.Take();
        const std::unique_ptr<Transfer> released = Release(transfer.id);
        if (plain.may_carry_another() && idle_.size() < kKeptConnections) {
          idle_.push_back(&plain);
        } else {
          Close(plain);
        }
        return released->done(std::move(response));
      }
      case PlainConnection::Progress::kForCurl:
        for_curl_.insert(plain.authority());
        return SendAgain(transfer);
      case PlainConnection::Progress::kTooLarge:
        Close(plain);
        return Fail(transfer.id, kTooLarge);
      case PlainConnection::Progress::kEnded:
        // A server may close a connection that has waited for a while.
        if (plain.was_used() && !plain.begun()) return SendAgain(transfer);
        Close(plain);
        return Fail(transfer.id,
                    {TransportFault::Kind::kMayPass, "the connection ended before the answer was whole"});
    }
  }
  void SendAgain(Transfer& transfer) {
    Close(*std::exchange(transfer.plain, nullptr));
    LeaveToCurl(transfer);
  }

  void EndLate() {
    const Instant now = clock_.Now();
    if (carried_.empty() || now < next_look_) return;
    next_look_ = now + kBetweenLooks;
    std::vector<std::pair<uint64_t, const char*>> late;
    for (const auto& [plain, transfer] : carried_) {
      if (now >= transfer->due) {
        late.emplace_back(transfer->id, "no whole answer in time");
      } else if (now - transfer->last_bytes.value_or(transfer->begun) >=
                 std::chrono::seconds(kStallSeconds)) {
        late.emplace_back(transfer->id, "no byte came for too long");
      }
    }
    for (const auto& [id, why] : late) {
      const auto found = transfers_.find(id);
      if (found == transfers_.end()) continue;  // the end of another has cancelled it
      Close(*found->second->plain);
      Fail(id, {TransportFault::Kind::kMayPass, why});
    }
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
      char* known = nullptr;
      curl_easy_getinfo(curl, CURLINFO_PRIVATE, &known);
      Transfer* const done = reinterpret_cast<Transfer*>(known);
      if (code == CURLE_OK && done->connects) {
        Connected(*done);
        continue;
      }
      const std::unique_ptr<Transfer> transfer = Release(done->id);
      if (code != CURLE_OK) {
        TransportFault fault{KindOf(code), transfer->words[0] ? transfer->words : curl_easy_strerror(code)};
        if (transfer->too_large) fault = kTooLarge;
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
  std::optional<Instant> due_;                                         // of the library's timers
  std::unordered_map<uint64_t, std::unique_ptr<Transfer>> transfers_;  // by their id
  std::vector<CURL*> spare_;

  const bool has_proxy_ = std::ranges::any_of(std::array{"http_proxy", "all_proxy", "ALL_PROXY"},
                                              [](const char* name) { return std::getenv(name) != nullptr; });
  std::unordered_map<int, std::unique_ptr<PlainConnection>> plain_;  // by their descriptor
  std::vector<PlainConnection*> idle_;                               // the last one is used first
  std::unordered_map<PlainConnection*, Transfer*> carried_;          // what the others carry
  std::unordered_set<std::string> for_curl_;  // servers whose answers only curl understands
  Instant next_look_{};
  uint64_t last_ = 0;
};

}  // namespace

std::unique_ptr<Transport> MakeCurlTransport(const Clock& clock, const std::string& ca_bundle) {
  return std::make_unique<CurlTransport>(clock, ca_bundle);
}

}  // namespace weir::object
