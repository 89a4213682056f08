#include "http/http_server_loop.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "base/thread.h"

namespace weir::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kSweep = 500ms;      // how often stalled connections are looked for
constexpr auto kIdleGrace = 100ms;  // an idle connection stays open for after StopAccepting
constexpr auto kLeastIdle = 100ms;  // before an idle connection may be closed for a new one
constexpr int kIdleTried = 16;      // idle connections that are looked at for a new one

}  // namespace

void ServerLoop::Start(int number) {
  SweepSoon(kSweep);
  thread_ = StartThread(fmt::format("http-{}", number), [this](std::stop_token) {
    thread_id_ = std::this_thread::get_id();
    io.run();
  });
}

void ServerLoop::Adopt(tcp::socket socket, bool spare) {
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  if (!spare) {
    MutexLock lock(shared->mutex);
    ++shared->open;
  }
  auto connection = std::make_shared<ServerConnection>(shared_from_this(), std::move(socket), spare);
  ServerConnections& those = Of(connection->standing());
  connection->place = those.insert(those.end(), connection);
  if (stopping_) return connection->Close();
  if (spare && std::ssize(those) > shared->options.spare_connections()) {
    const std::shared_ptr<ServerConnection> oldest = those.front();
    oldest->GiveUp();
  }
  connection->Start();
}

bool ServerLoop::CloseOldestIdle(ServerLoop& by) {
  const Instant now = shared->clock.Now();
  int tried = 0;
  for (const std::shared_ptr<ServerConnection>& connection : Of(ServerStanding::kIdle)) {
    if (++tried > kIdleTried) return false;
    if (!connection->IdleFor(kLeastIdle, now)) continue;
    ++by.connections;
    const std::shared_ptr<ServerConnection> oldest = connection;
    oldest->Close();
    shared->Tell(HttpEvent::kIdleClosed);
    return true;
  }
  return false;
}

void ServerLoop::SweepSoon(Duration in) {
  if (stopping_) return;
  sweep_.expires_after(in);
  sweep_.async_wait([this](error_code error) {
    if (!error) Sweep();
  });
}

void ServerLoop::Sweep() {
  const Instant now = shared->clock.Now();
  for (ServerConnections& those : connections_) {
    for (auto at = those.begin(); at != those.end();) {
      const std::shared_ptr<ServerConnection> connection = *at++;  // it may take itself off the list
      connection->CutIfStalled(now);
    }
  }
  SweepSoon(shared->draining ? Duration(kIdleGrace) : Duration(kSweep));
}

void ServerLoop::Drain() {
  for (const ServerStanding standing : {ServerStanding::kBusy, ServerStanding::kIdle}) {
    for (auto at = Of(standing).begin(); at != Of(standing).end();) {
      const std::shared_ptr<ServerConnection> connection = *at++;  // it may take itself off the list
      connection->Drain();
    }
  }
  SweepSoon(kIdleGrace);
}

void ServerLoop::Deliver(Delivery delivery) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      deliveries_.push_back(std::move(delivery));
      if (deliveries_.size() == 1) asio::post(io, [this] { TakeDeliveries(); });
      return;
    }
  }
  if (delivery.sent) delivery.sent(shared->clock.Now());
}

void ServerLoop::TakeDeliveries() {
  std::vector<Delivery> taken;
  {
    MutexLock lock(mutex_);
    taken.swap(deliveries_);
  }
  for (Delivery& d : taken) d.to->Put(d.request, std::move(d.reply), std::move(d.sent));
}

void ServerLoop::Stop() {
  asio::post(io, [this] {
    stopping_ = true;
    for (ServerConnections& those : connections_) {
      while (!those.empty()) {
        const std::shared_ptr<ServerConnection> first = those.front();
        first->Close();
      }
    }
    sweep_.cancel();
  });
  if (thread_.joinable()) thread_.join();  // not begun where the address could not be had
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  TakeDeliveries();
}

}  // namespace weir::http
