// One connection of the HTTP server: reads requests, hands them over, sends answers in their order.
#include <poll.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "http/error_body.h"
#include "http/http_server_loop.h"

namespace weir::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kPipelined = 32;  // requests of one connection that may be open; the next is not read
constexpr size_t kGathered = 64;   // parts in one write, Asio's own limit
constexpr size_t kSentAtOnce = size_t{4} << 20;  // of one connection, before it is others' turn

}  // namespace

HttpResponse ErrorResponse(int status, std::string message) {
  HttpResponse reply{.status = status,
                     .body = {Bytes::Copy(ErrorBody({ErrorCode::kInvalidArgument, std::move(message)}))}};
  if (status == 503) reply.headers.emplace_back("Retry-After", "1");
  if (status == 415) reply.headers.emplace_back("Accept-Encoding", "identity");
  return reply;
}

void ServerConnection::Read() {
  if (reading_ || closed_ || (full_ && !ending_)) return;
  reading_ = true;
  const std::span<std::byte> space = reader_.Space();
  socket_.async_read_some(asio::buffer(space.data(), space.size()),
                          [self = shared_from_this()](error_code error, size_t size) {
                            self->reading_ = false;
                            self->OnRead(error, size);
                          });
}

void ServerConnection::OnRead(error_code error, size_t size) {
  if (closed_) return;
  if (error) return error == asio::error::eof && answers_.open() > 0 ? EndOfRequests() : Leave();
  last_progress_ = shared_.clock.Now();
  if (ending_) {
    reader_.Discard();
    return Read();
  }
  reader_.Filled(size, last_progress_);
  Process();
}

void ServerConnection::Leave() {
  answers_.ClientLeft();
  Close();
}

// The client sends no more. Half a connection still takes what is owed; a client that has closed all of it
// answers the first byte with a reset.
void ServerConnection::EndOfRequests() {
  ending_ = left_ = true;
  const std::span<const std::byte> early = answers_.EarlyBytes();
  if (!early.empty()) {
    error_code error;
    const size_t sent = socket_.write_some(asio::buffer(early.data(), early.size()), error);
    if (error && error != asio::error::would_block) return Leave();
    if (!error) answers_.Advance(sent, shared_.clock.Now());
  }
  WatchForReset();
}

bool ServerConnection::IsReset() const {
  pollfd state{.fd = const_cast<tcp::socket&>(socket_).native_handle(), .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

// While nothing is read: a client that leaves is found by its reset.
void ServerConnection::WatchForReset() {
  if (std::exchange(watching_, true)) return;
  socket_.async_wait(tcp::socket::wait_error, [self = shared_from_this()](error_code error) {
    self->watching_ = false;
    if (self->closed_ || error == asio::error::operation_aborted) return;
    if (self->IsReset()) return self->Leave();
    if (self->left_ || self->full_) self->WatchForReset();
  });
}

void ServerConnection::UpdateStanding() {
  if (closed_ || spare()) return;
  const bool idle = answers_.open() == 0 && !ending_ && reader_.phase() == HttpRequestReader::Phase::kIdle;
  const ServerStanding now = idle ? ServerStanding::kIdle : ServerStanding::kBusy;
  if (idle || now != standing_) loop_->Move(place, std::exchange(standing_, now), now);
}

// Answers that are there at once go out together.
void ServerConnection::Process() {
  do {
    processing_ = true;
    full_ = TakeRequests();
    processing_ = false;
    Flush();
  } while (full_ && !ending_ && !closed_ && answers_.open() < kPipelined);
  UpdateStanding();
  if (full_ && !closed_) WatchForReset();
  Read();
}

bool ServerConnection::TakeRequests() {
  bool known_alive = false;
  while (!ending_ && answers_.open() < kPipelined) {
    auto next = reader_.Next();
    if (auto* request = std::get_if<HttpRequest>(&next)) {
      // One of several: those of a client that has left meanwhile are not begun. (A single one is not worth a
      // call of the kernel.)
      const bool pipelined = answers_.open() > 0 || reader_.phase() != HttpRequestReader::Phase::kIdle;
      if (pipelined && !std::exchange(known_alive, true) && IsReset()) {
        Leave();
        return false;
      }
      spare() ? TakeSpare(std::move(*request)) : Take(std::move(*request));
    } else if (auto* refusal = std::get_if<HttpRefusal>(&next)) {
      shared_.Tell(refusal->over_budget ? HttpEvent::kTooManyBytes : HttpEvent::kMalformed);
      Refuse(refusal->status, std::move(refusal->message));
    } else if (spare() && reader_.phase() == HttpRequestReader::Phase::kBody) {
      RefuseSpare();
    } else {
      if (reader_.TakeExpectsContinue()) answers_.Continue();
      return false;
    }
  }
  return !ending_;
}

void ServerConnection::TakeSpare(HttpRequest request) {
  const auto& is_probe = shared_.options.is_probe;
  if (!request.body.empty() || !is_probe || !is_probe(request)) return RefuseSpare();
  Take(std::move(request));
  ending_ = true;
}

void ServerConnection::RefuseSpare() {
  const bool stopping = shared_.draining;
  shared_.Tell(stopping ? HttpEvent::kStopping : HttpEvent::kTooManyConnections);
  Refuse(503, stopping ? "the server is stopping" : "too many connections");
}

void ServerConnection::GiveUp() {
  if (!ending_) shared_.Tell(shared_.draining ? HttpEvent::kStopping : HttpEvent::kTooManyConnections);
  Close();
}

void ServerConnection::Take(HttpRequest request) {
  const uint64_t number = answers_.Open(
      {.close = !reader_.keep_alive(), .is_head = reader_.is_head(), .is_http10 = reader_.is_http10()});
  ending_ |= !reader_.keep_alive();
  request.left = answers_.left(number);
  shared_.handler(std::move(request), HttpResponder(shared_from_this(), number));
}

void ServerConnection::Refuse(int status, std::string message) {
  ending_ = true;
  const uint64_t number = answers_.Open({.close = true});
  Put(number, ErrorResponse(status, std::move(message)), {});
  Read();
}

void ServerConnection::Put(uint64_t request, HttpResponse reply, HttpResponder::Sent sent) {
  if (closed_ || lingering_) {
    if (sent) sent(shared_.clock.Now());
    return;
  }
  ending_ |= answers_.Put(request, std::move(reply), std::move(sent), shared_.budget);
  if (processing_) return;  // sent together with what else is read now
  Flush();
  full_ ? Process() : UpdateStanding();
}

void ServerConnection::Flush() {
  size_t sent_now = 0;
  while (!writing_ && !closed_ && answers_.ready()) {
    std::array<std::span<const std::byte>, kGathered> parts;
    std::array<asio::const_buffer, kGathered> buffers;
    const size_t count = answers_.Gather(parts);
    for (size_t i = 0; i < count; ++i) buffers[i] = asio::const_buffer(parts[i].data(), parts[i].size());
    error_code error;
    const size_t sent = socket_.write_some(std::span(buffers.data(), count), error);
    if (error == asio::error::would_block) return WaitToWrite();
    if (error) return Close();
    last_progress_ = last_answered_ = shared_.clock.Now();
    sending_.last_byte = last_progress_;
    sending_.bytes += sent;
    sent_now += sent;
    answers_.Advance(sent, last_progress_);
    if (answers_.closed()) return Finish();
    if (sent_now >= kSentAtOnce && answers_.ready()) return WaitToWrite();
  }
  if (!writing_) sending_ = {};
  if (left_ && answers_.open() == 0) Close();
}

void ServerConnection::WaitToWrite() {
  writing_ = true;
  if (sending_.began == Instant{}) {
    const Instant now = shared_.clock.Now();
    sending_ = {now, now, 0};
  }
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code error) {
    self->writing_ = false;
    if (error) return self->Close();
    self->Flush();
    self->full_ ? self->Process() : self->UpdateStanding();
  });
}

// After the last answer: a close with bytes unread would make the kernel take the answer back.
void ServerConnection::Finish() {
  answers_.Abandon(last_progress_);
  lingering_ = ending_ = true;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  if (!spare()) {
    MutexLock lock(shared_.mutex);
    --shared_.open;
    shared_.changed.NotifyAll();
  }
}

bool ServerConnection::IdleFor(Duration least, Instant now) const {
  error_code ignored;
  return standing_ == ServerStanding::kIdle && now - last_progress_ >= least &&
         socket_.available(ignored) == 0;
}

HttpActivity ServerConnection::Activity() const {
  using Phase = HttpActivity::Phase;
  HttpActivity activity{.spare = spare(), .draining = shared_.draining, .since = since_};
  const auto in_phase = [&](Phase phase, Instant began) {
    activity.phase = phase;
    if (!activity.spare || phase == Phase::kLingering) activity.since = began;
    return activity;
  };
  if (lingering_) return in_phase(Phase::kLingering, last_answered_);
  if (writing_) {
    activity.transfer = sending_;
    return in_phase(Phase::kSending, sending_.began);
  }
  if (answers_.open() > 0 || ending_) return in_phase(Phase::kWorking, last_progress_);
  // A request may have waited for the answers before it.
  const auto after_answers = [&](Instant at) { return std::max(at, last_answered_); };
  activity.first_byte = after_answers(reader_.first_byte());
  if (reader_.phase() == HttpRequestReader::Phase::kIdle) return in_phase(Phase::kIdle, last_progress_);
  if (reader_.phase() == HttpRequestReader::Phase::kHead) return in_phase(Phase::kHead, activity.first_byte);
  const HttpTransfer body = reader_.body();
  activity.transfer = {after_answers(body.began), after_answers(body.last_byte), body.bytes};
  return in_phase(Phase::kBody, activity.transfer.began);
}

void ServerConnection::CutIfStalled(Instant now) {
  using Action = HttpTimeVerdict::Action;
  const HttpActivity activity = Activity();
  const HttpTimeVerdict verdict = JudgeTime(shared_.options.timeouts, activity, now);
  if (verdict.action == Action::kKeep) return;
  if (activity.spare && !ending_) return GiveUp();
  if (verdict.action == Action::kRefuse || activity.phase == HttpActivity::Phase::kSending)
    shared_.Tell(HttpEvent::kTooSlow);
  verdict.action == Action::kRefuse ? Refuse(408, std::string(verdict.reason)) : Close();
}

void ServerConnection::Close() {
  if (std::exchange(closed_, true)) return;
  ending_ = true;
  const auto self = shared_from_this();
  error_code ignored;
  socket_.close(ignored);
  answers_.Abandon(shared_.clock.Now());
  if (!lingering_ && !spare()) {
    MutexLock lock(shared_.mutex);
    --shared_.open;
    shared_.changed.NotifyAll();
  }
  if (!spare()) --loop_->connections;
  loop_->Release(place, standing_);
}

}  // namespace weir::http
