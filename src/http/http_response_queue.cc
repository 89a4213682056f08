#include "http/http_response_queue.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <boost/beast/http/status.hpp>

namespace weir::http {
namespace {

constexpr std::string_view kVersion = "HTTP/1.1 ";

std::string_view Reason(int status) {
  if (status == 499) return "Client Closed Request";
  return boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
}

size_t BodySize(const HttpResponse& reply) {
  size_t size = 0;
  for (const Bytes& part : reply.body) size += part.size();
  return size;
}

void AppendNumber(std::string& out, size_t number) {
  char digits[20];
  out.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
}

std::string Head(const HttpResponse& reply, const HttpResponseQueue::Form& form) {
  std::string head;
  head.reserve(192);
  head += kVersion;
  AppendNumber(head, static_cast<size_t>(reply.status));
  head += ' ';
  head += Reason(reply.status);
  head += "\r\nContent-Type: ";
  head += reply.content_type;
  head += "\r\nContent-Length: ";
  AppendNumber(head, BodySize(reply));
  for (const auto& [name, value] : reply.headers) {
    head += "\r\n";
    head += name;
    head += ": ";
    head += value;
  }
  if (form.close) {
    head += "\r\nConnection: close";
  } else if (form.is_http10) {
    head += "\r\nConnection: keep-alive";
  }
  head += "\r\n\r\n";
  return head;
}

}  // namespace

size_t HttpResponseQueue::Slot::size() const {
  size_t size = head.size();
  for (const Bytes& part : body) size += part.size();
  return size;
}

uint64_t HttpResponseQueue::Open(Form form) {
  slots_.push_back({.form = form, .left = std::stop_source()});
  return first_ + slots_.size() - 1;
}

void HttpResponseQueue::Continue() {
  slots_.push_back({.ready = true, .head = "HTTP/1.1 100 Continue\r\n\r\n"});
}

HttpResponseQueue::Slot& HttpResponseQueue::Find(uint64_t number) {
  CHECK(number - first_ < slots_.size());
  return slots_[number - first_];
}

std::stop_token HttpResponseQueue::left(uint64_t number) { return Find(number).left.get_token(); }

bool HttpResponseQueue::Put(uint64_t number, HttpResponse reply, HttpResponder::Sent sent,
                            const std::shared_ptr<ByteBudget>& budget) {
  Slot& slot = Find(number);
  CHECK(!slot.ready);
  slot.form.close |= close_with_last_ && &slot == &slots_.back();
  slot.head = Head(reply, slot.form);
  if (!slot.form.is_head) slot.body = std::move(reply.body);
  slot.sent = std::move(sent);
  if (budget) slot.share.emplace(budget->Charge(slot.size()));
  slot.ready = true;
  return slot.form.close;
}

std::span<const std::byte> HttpResponseQueue::EarlyBytes() const {
  if (slots_.empty() || slots_.front().ready || gone_ > 0) return {};
  return std::as_bytes(std::span(kVersion));
}

size_t HttpResponseQueue::Gather(std::span<std::span<const std::byte>> parts) const {
  size_t count = 0;
  size_t skip = gone_;
  const auto add = [&](std::span<const std::byte> part) {
    const size_t skipped = std::min(skip, part.size());
    skip -= skipped;
    if (part.size() > skipped && count < parts.size()) parts[count++] = part.subspan(skipped);
  };
  for (const Slot& slot : slots_) {
    if (!slot.ready || count == parts.size()) break;
    add(std::as_bytes(std::span(slot.head)));
    for (const Bytes& part : slot.body) add(part.span());
    if (slot.form.close) break;
  }
  return count;
}

void HttpResponseQueue::Advance(size_t size, Instant now) {
  gone_ += size;
  while (ready() && !closed_ && gone_ >= slots_.front().size()) {
    gone_ -= slots_.front().size();
    closed_ = slots_.front().form.close;
    PopFront(now);
  }
}

void HttpResponseQueue::PopFront(Instant now) {
  HttpResponder::Sent sent = std::move(slots_.front().sent);
  slots_.pop_front();
  ++first_;
  if (sent) sent(now);
}

void HttpResponseQueue::ClientLeft() {
  for (Slot& slot : slots_) {
    if (slot.left.stop_possible()) slot.left.request_stop();
  }
}

void HttpResponseQueue::Abandon(Instant now) {
  ClientLeft();
  gone_ = 0;
  closed_ = true;
  while (!slots_.empty()) PopFront(now);
}

}  // namespace weir::http
