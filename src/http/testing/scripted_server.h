// A server whose every connection plays a script, byte for byte: for what a good server never does.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"

namespace weir::http::testing {

// One accepted connection. Blocking; what the client has broken off is read as the end.
class Peer {
 public:
  explicit Peer(UniqueFd fd) : fd_(std::move(fd)) {
    const int on = 1;
    CHECK(::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
  }

  // Head and body (by its Content-Length) of the next request; empty: the client has closed.
  std::string ReadRequest() {
    std::string text = std::exchange(left_over_, {});
    size_t head = 0;
    while ((head = text.find("\r\n\r\n")) == std::string::npos) {
      if (!ReadSome(text)) return "";
    }
    size_t size = head + 4;
    if (const size_t length = text.find("Content-Length: "); length < head)
      size += std::stoul(text.substr(length + 16));
    while (text.size() < size) {
      if (!ReadSome(text)) return "";
    }
    left_over_ = text.substr(size);
    return text.substr(0, size);
  }
  // So many bytes; fewer: the client has closed.
  std::string Read(size_t size) {
    std::string text = std::exchange(left_over_, {});
    while (text.size() < size && ReadSome(text)) continue;
    left_over_ = text.substr(std::min(size, text.size()));
    return text.substr(0, size);
  }
  void Write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void WriteOk(std::string_view body) {
    Write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
    Write(body);
  }
  void WaitUntilClosed() {
    std::string rest;
    while (ReadSome(rest)) rest.clear();
  }
  void WriteUrgent(char byte) { ::send(fd_.get(), &byte, 1, MSG_OOB | MSG_NOSIGNAL); }
  // No more answers, but the client may go on to send.
  void EndAnswers() { ::shutdown(fd_.get(), SHUT_WR); }

 private:
  bool ReadSome(std::string& text) {
    char buffer[65536];
    const ssize_t size = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (size > 0) text.append(buffer, static_cast<size_t>(size));
    return size > 0;
  }

  const UniqueFd fd_;
  std::string left_over_;
};

// Connections play at the same time, each on a thread; each script gets the number of its connection, from 0.
// The destructor waits until all scripts have ended: clients must have gone.
class ScriptedServer {
 public:
  using Script = std::function<void(Peer&, int)>;
  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(::listen(listener_.get(), 128) == 0);
    CHECK(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::jthread([this] { Accept(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
  }

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const {
    MutexLock lock(mutex_);
    return connections_;
  }

 private:
  void Accept() {
    std::vector<std::jthread> players;
    while (true) {
      UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
      if (!fd.valid()) return;
      MutexLock lock(mutex_);
      players.emplace_back([this, fd = std::move(fd), number = connections_++]() mutable {
        Peer peer(std::move(fd));
        script_(peer, number);
      });
    }
  }

  const Script script_;
  UniqueFd listener_;
  int port_ = 0;

  mutable Mutex mutex_;
  int connections_ GUARDED_BY(mutex_) = 0;

  std::jthread acceptor_;
};

}  // namespace weir::http::testing
