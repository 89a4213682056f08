#include "probe/host_speed.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "probe/amx_speed.h"
#include "probe/storage_session.h"
#include "stats/histogram.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir::probe {
namespace {

constexpr int kChains = 12;  // independent sums: more than latency x ports of a multiply-add
constexpr int kRound = 1000;
constexpr size_t kAll = size_t{256} << 20, kPiece = size_t{1} << 20;  // bytes of the memory measurement

// The pragmas keep the sums in registers: -O2 would leave them in memory.
// Each kernel does kRound x kChains vector multiply-adds and returns their number of scalar ones. `sink`
// keeps the compiler from leaving them out.
using Kernel = double (*)(float& sink);

double GenericF32(float& sink) {
  constexpr int kLanes = 4;
  typedef float Vector __attribute__((vector_size(16)));
  Vector sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = Vector{} + static_cast<float>(i);
  const Vector factor = Vector{} + 0.999F, term = Vector{} + 0.001F;
  for (int round = 0; round < kRound; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = sums[i] * factor + term;
  }
  for (const Vector& sum : sums) sink += sum[0];
  return double{kRound} * kChains * kLanes;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double Avx2F32(float& sink) {
  __m256 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.999F), term = _mm256_set1_ps(0.001F);
  for (int round = 0; round < kRound; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
  for (int i = 0; i < kChains; ++i) sink += _mm256_cvtss_f32(sums[i]);
  return double{kRound} * kChains * 8;
}

__attribute__((target("avx512f"))) double Avx512F32(float& sink) {
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(0.999F), term = _mm512_set1_ps(0.001F);
  for (int round = 0; round < kRound; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
  }
  for (int i = 0; i < kChains; ++i) sink += _mm512_cvtss_f32(sums[i]);
  return double{kRound} * kChains * 16;
}

__attribute__((target("avx512f,avx512bf16"))) double Avx512Bf16(float& sink) {
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5F), _mm512_set1_ps(0.5F));
  for (int round = 0; round < kRound; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], a, a);
  }
  for (int i = 0; i < kChains; ++i) sink += _mm512_cvtss_f32(sums[i]);
  return double{kRound} * kChains * 32;
}

__attribute__((target("avx512f,avx512vnni"))) double Avx512Int8(float& sink) {
  __m512i sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_epi32(i);
  const __m512i a = _mm512_set1_epi8(1);
  for (int round = 0; round < kRound; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], a, a);
  }
  for (const __m512i& sum : sums) {
    int first = 0;
    std::memcpy(&first, &sum, sizeof first);
    sink += static_cast<float>(first);
  }
  return double{kRound} * kChains * 64;
}
#endif

std::atomic<float> g_unused_result;

// Work done a second by `threads` threads, each with its own body. A body does a piece and returns its
// amount.
double RateOfThreads(int threads, Duration budget, const Clock& clock,
                     const std::function<std::function<double()>(int)>& make_body) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::atomic<int> waiting = threads;
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i)
      running.push_back(StartThread("speed", [&, i](const std::stop_token&) {
        const auto body = make_body(i);
        body();  // pages and caches
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        const Instant begin = clock.Now();
        double done = 0;
        Instant now = begin;
        for (; now - begin < budget; now = clock.Now()) done += body();
        rates[static_cast<size_t>(i)] = done / Seconds(now - begin);
      }));
  }
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

HostRate Arithmetic(Kernel kernel, const HostSpeedOptions& options, const Clock& clock) {
  const auto body = [kernel](int) {
    return [kernel] {
      float sink = 0;
      const double done = kernel(sink);
      g_unused_result.store(sink, std::memory_order_relaxed);
      return done;
    };
  };
  return {RateOfThreads(1, options.budget, clock, body),
          RateOfThreads(options.threads, options.budget, clock, body)};
}

// Blocks of 256 MiB in all, split over the threads, so that they do not fit in the caches.
HostRate Memory(bool copy, const HostSpeedOptions& options, const Clock& clock) {
  const auto measure = [&](int threads) {
    const size_t pieces = std::max<size_t>(8, kAll / kPiece / static_cast<size_t>(threads));
    return RateOfThreads(threads, options.budget, clock, [&](int) {
      auto block = std::make_shared<std::vector<uint64_t>>(pieces * kPiece / 8, 1);
      auto at = std::make_shared<size_t>(0);
      return std::function<double()>([block, at, pieces, copy] {
        const size_t words = kPiece / 8;
        uint64_t* piece = block->data() + (*at)++ % pieces * words;
        if (copy) {
          uint64_t* target = block->data() + (*at + pieces / 2) % pieces * words;
          if (target != piece) std::memcpy(target, piece, kPiece);
        } else {
          uint64_t sums[8] = {};
          for (size_t i = 0; i < words; i += 8)
            for (size_t k = 0; k < 8; ++k) sums[k] += piece[i + k];
          g_unused_result.store(static_cast<float>(sums[0] + sums[3] + sums[7]), std::memory_order_relaxed);
        }
        return static_cast<double>(kPiece);
      });
    });
  };
  return {measure(1), measure(options.threads)};
}

double Micro(std::optional<int64_t> ns) { return static_cast<double>(ns.value_or(0)) / 1e3; }

// A thread sleeps until another signals it; the time from the signal to its run.
stats::Histogram WakeUps(Duration budget, const Clock& clock) {
  Mutex mutex;
  CondVar changed;
  std::optional<Instant> signalled;
  bool ended = false;
  stats::Histogram late;
  std::jthread sleeper = StartThread("speed", [&](const std::stop_token&) {
    const MutexLock lock(mutex);
    while (true) {
      while (!signalled && !ended) changed.Wait(mutex);
      if (!signalled) return;
      late.Add((clock.Now() - *signalled).count());
      signalled.reset();
    }
  });
  const Instant begin = clock.Now();
  while (clock.Now() - begin < budget) {
    SleepUntil(clock.Now() + 200us);
    const MutexLock lock(mutex);
    if (!signalled) signalled = clock.Now();
    changed.NotifyOne();
  }
  {
    const MutexLock lock(mutex);
    ended = true;
    changed.NotifyOne();
  }
  sleeper.join();
  return late;
}

bool TransferAll(int fd, char* bytes, size_t count, bool write) {
  for (size_t done = 0; done < count;) {
    const ssize_t got = write ? ::send(fd, bytes + done, count - done, MSG_NOSIGNAL)
                              : ::recv(fd, bytes + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

// Half of the round trips of 64 bytes between two threads over TCP.
Result<stats::Histogram> Loopback(Duration budget, const Clock& clock) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (!listener.valid() || ::bind(listener.get(), plain, length) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), plain, &length) != 0)
    return FailErrno("a socket on loopback", errno);
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!client.valid() || ::connect(client.get(), plain, length) != 0)
    return FailErrno("a connection over loopback", errno);
  const UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!server.valid()) return FailErrno("a connection over loopback", errno);
  const int on = 1;
  ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(server.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::jthread echo = StartThread("speed", [fd = server.get()](const std::stop_token&) {
    char bytes[64];
    while (TransferAll(fd, bytes, sizeof bytes, false) && TransferAll(fd, bytes, sizeof bytes, true)) {
    }
  });
  stats::Histogram trips;
  char bytes[64] = {};
  const Instant end = clock.Now() + budget;
  bool whole = true;
  while (whole && clock.Now() < end) {
    const Instant begin = clock.Now();
    whole = TransferAll(client.get(), bytes, sizeof bytes, true) &&
            TransferAll(client.get(), bytes, sizeof bytes, false);
    if (whole) trips.Add((clock.Now() - begin).count() / 2);
  }
  ::shutdown(client.get(), SHUT_RDWR);
  echo.join();
  if (!whole) return Fail(ErrorCode::kIo, "the connection over loopback ended early");
  return trips;
}

// Nanoseconds of one call of `body`, the mean over the budget.
template <typename Body>
double MeanNanoseconds(Duration budget, const Clock& clock, const Body& body) {
  constexpr int kCalls = 1000;
  int64_t calls = 0;
  const Instant begin = clock.Now();
  Instant now = begin;
  for (; now - begin < budget; now = clock.Now(), calls += kCalls)
    for (int i = 0; i < kCalls; ++i) body();
  return static_cast<double>((now - begin).count()) / static_cast<double>(std::max<int64_t>(1, calls));
}

}  // namespace

Result<HostSpeed> MeasureHostSpeed(const HostSpeedOptions& options, const Clock& clock) {
  HostSpeed speed{.threads = options.threads, .arithmetic = "generic"};
  Kernel f32 = GenericF32;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    speed.arithmetic = "avx512";
    f32 = Avx512F32;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    speed.arithmetic = "avx2";
    f32 = Avx2F32;
  }
  const AmxKernels amx = FindAmxKernels();
  if (amx.bf16 != nullptr || __builtin_cpu_supports("avx512bf16"))
    speed.bf16_multiply_adds = Arithmetic(amx.bf16 != nullptr ? amx.bf16 : Avx512Bf16, options, clock);
  if (amx.int8 != nullptr || __builtin_cpu_supports("avx512vnni"))
    speed.int8_multiply_adds = Arithmetic(amx.int8 != nullptr ? amx.int8 : Avx512Int8, options, clock);
  if (amx.bf16 != nullptr || amx.int8 != nullptr) speed.arithmetic += " amx";
#endif
  speed.f32_multiply_adds = Arithmetic(f32, options, clock);
  speed.memory_read_bytes = Memory(false, options, clock);
  speed.memory_copy_bytes = Memory(true, options, clock);
  speed.clock_read_ns = MeanNanoseconds(options.budget / 10, clock, [&] { clock.Now(); });
  speed.system_call_ns = MeanNanoseconds(options.budget / 10, clock, [] { ::syscall(SYS_getppid); });
  stats::Histogram late;
  for (const Instant end = clock.Now() + options.budget; clock.Now() < end;) {
    const Instant wanted = clock.Now() + 500us;
    SleepUntil(wanted);
    late.Add((clock.Now() - wanted).count());
  }
  speed.timer_late_us = Micro(late.Quantile(0.5));
  speed.timer_late_p99_us = Micro(late.Quantile(0.99));
  const stats::Histogram wake_ups = WakeUps(options.budget, clock);
  speed.wake_up_us = Micro(wake_ups.Quantile(0.5));
  speed.wake_up_p99_us = Micro(wake_ups.Quantile(0.99));
  const stats::Histogram trips = TRY(Loopback(options.budget, clock));
  speed.loopback_us = Micro(trips.Quantile(0.5));
  speed.loopback_p99_us = Micro(trips.Quantile(0.99));
  return speed;
}

Result<HostReport> MeasureHost(const HostSpeedOptions& options, const Clock& clock) {
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock, {.nvml_library = ""}));
  HostReport report{.speed = TRY(MeasureHostSpeed(options, clock))};
  report.machine = MachineUseOf(monitor->Stop(), static_cast<int>(std::thread::hardware_concurrency()));
  JudgeMachine(report.machine, report.verdict);
  return report;
}

}  // namespace weir::probe
