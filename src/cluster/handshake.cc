#include "cluster/handshake.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cluster/socket.h"

namespace weir::cluster {
namespace {

constexpr size_t kMostBytes = 2 * kMostFirstBytes;  // of a handshake, encrypted
constexpr int kAcceptedAtOnce = 64;

}  // namespace

Result<bool> Handshake::Step() {
  const bool begins = tls_ == nullptr && side_ == Side::kCaller;  // it has the first word
  std::string bytes;
  if (!begins) {
    bytes = TRY(ReceiveNow(fd_.get()));
    received_ += bytes.size();
    if (bytes.empty()) return false;
    if (received_ > kMostBytes)
      return Fail(ErrorCode::kCorrupt, "the other side sends more than a handshake has");
  }
  if (tls_ == nullptr) tls_ = TRY(TlsSession::Create(side_, token_));
  const Status taken = Take(bytes);
  // Also the alert of a refusal, for the other side's message. It is short: the socket has room.
  const std::string output = tls_->TakeOutput();
  const auto sent = SendNow(fd_.get(), output);
  TRY_STATUS(taken);
  if (TRY(sent) != output.size())
    return Fail(ErrorCode::kIo, "the other side takes no bytes of the handshake");
  return IsMade();
}

Status Handshake::Take(const std::string& bytes) {
  if (!bytes.empty()) TRY_STATUS(tls_->Receive(bytes));
  reader_.Add(TRY(tls_->Read()));
  return {};
}

Result<bool> Handshake::IsMade() const {
  if (!tls_->established()) return false;
  return until_ == Until::kEncrypted ? Result<bool>(true) : reader_.HasNext();
}

std::unique_ptr<Connection> Handshake::Finish(const Clock& clock) && {
  return std::make_unique<Connection>(std::move(fd_), std::move(tls_), std::move(reader_), clock);
}

Result<std::unique_ptr<Connection>> Handshakes::Next(int listener, Instant until) {
  while (true) {
    std::vector<pollfd> waited{{.fd = listener, .events = POLLIN, .revents = 0}};
    Instant soonest = until;
    for (const Pending& pending : pending_) {
      waited.push_back({.fd = pending.handshake.fd(), .events = POLLIN, .revents = 0});
      soonest = std::min(soonest, pending.until);
    }
    WaitForAny(waited, soonest, clock_);
    const Instant now = clock_.Now();
    for (size_t i = waited.size(); i-- > 1;) {  // from the end: those before keep their places
      if (waited[i].revents == 0) continue;
      const auto pending = pending_.begin() + static_cast<std::ptrdiff_t>(i - 1);
      const auto made = pending->handshake.Step();
      if (!made) {
        Refuse(pending, made.error());
      } else if (*made) {
        auto connection = std::move(pending->handshake).Finish(clock_);
        pending_.erase(pending);
        return connection;
      }
    }
    EndLate(now);
    if (waited.front().revents != 0) TRY_STATUS(AcceptAll(listener, now));
    if (now >= until) return nullptr;
  }
}

Status Handshakes::AcceptAll(int listener, Instant now) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    auto fd = Accept(listener, now, clock_);
    if (!fd && fd.error().code == ErrorCode::kOverloaded) {
      if (pending_.empty()) return SleepUntil(now + 20ms), Status();
      MakeRoom();
      continue;
    }
    if (!fd) return std::unexpected(fd.error());
    if (!fd->valid()) return {};
    if (pending_.size() >= kMost) MakeRoom();
    std::string from = HostOf(fd->get(), true).value_or("?");
    pending_.push_back({.handshake = Handshake(*std::move(fd), Side::kListener, token_, until_),
                        .from = std::move(from),
                        .until = now + each_});
  }
  return {};
}

void Handshakes::MakeRoom() {
  const auto silent =
      std::ranges::find_if(pending_, [](const Pending& each) { return each.handshake.silent(); });
  Refuse(silent == pending_.end() ? pending_.begin() : silent,
         {ErrorCode::kOverloaded, "more connections at a time than handshakes are made"});
}

void Handshakes::Refuse(std::deque<Pending>::iterator pending, const Error& why) {
  ++refusals_.count;
  refusals_.last = {why.code, fmt::format("{}: {}", pending->from, why.message)};
  pending_.erase(pending);
}

void Handshakes::EndLate(Instant now) {
  while (!pending_.empty() && pending_.front().until <= now)
    Refuse(pending_.begin(), {ErrorCode::kDeadline, "its handshake did not end in time"});
}

}  // namespace weir::cluster
