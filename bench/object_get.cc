// Reads objects with a fixed number of requests in flight, and tells rate and CPU: ./dev bench object runs
// it.
//
//   object_get URL KEYS COUNT DEPTH     reads URL0 to URL(KEYS-1) in turn, COUNT times in all; prints one
//   line of JSON object_get --sign COUNT             signs so many requests
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <semaphore>

#include "base/clock.h"
#include "object/sigv4.h"
#include "object/source.h"

namespace {

using weir::object::SourceSet;

double CpuSeconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

int Sign(int count) {
  weir::object::Signer signer;
  const weir::object::Credentials credentials{
      .access_key = "AKIDEXAMPLE", .secret_key = "secret/key", .session_token = {}, .expires = {}};
  size_t bytes = 0;
  const double before = CpuSeconds();
  for (int i = 0; i < count; ++i) {
    const weir::object::SignRequest request{.path = fmt::format("/photos/2026/picture-{:08}.jpg", i),
                                            .query = {},
                                            .headers = {{"host", "bucket.s3.eu-central-1.amazonaws.com"},
                                                        {"range", "bytes=0-8388607"},
                                                        {"x-amz-content-sha256", "UNSIGNED-PAYLOAD"},
                                                        {"x-amz-date", "20130524T000000Z"}},
                                            .payload_hash = "UNSIGNED-PAYLOAD"};
    bytes += signer.Authorization(request, {.timestamp = "20130524T000000Z"}, credentials).size();
  }
  fmt::print("{{\"us_per_signature\": {}, \"bytes\": {}}}\n", 1e6 * (CpuSeconds() - before) / count, bytes);
  return 0;
}

int Get(const std::string& url, int keys, int count, int depth) {
  const weir::SteadyClock clock;
  SourceSet sources({.environment = {}, .most_in_flight = depth, .retries = {}, .timeout = {}}, clock);
  std::vector<SourceSet::Located> located;
  for (int i = 0; i < keys; ++i) {
    auto one = sources.Open(url + std::to_string(i));
    if (!one) return fmt::print(stderr, "{}\n", one.error().message), 1;
    located.push_back(*std::move(one));
  }
  std::atomic<int64_t> bytes = 0, failed = 0, begun = 0;
  std::counting_semaphore<> ended(0);
  // Each answer begins the next read, as reading ahead does.
  const std::function<void()> begin_next = [&] {
    const int64_t number = begun++;
    if (number >= count) return ended.release();
    const auto& one = located[static_cast<size_t>(number % keys)];
    one.source->Start({.key = one.key, .range = {}, .etag = {}, .size = {}}, [&](const auto& answer) {
      if (answer)
        bytes += static_cast<int64_t>(answer->body.size());
      else if (failed++ == 0)
        fmt::print(stderr, "{}\n", answer.error().message);
      begin_next();
    });
  };
  const weir::Instant begin = clock.Now();
  const double cpu_before = CpuSeconds();
  for (int i = 0; i < depth; ++i) begin_next();
  for (int i = 0; i < depth; ++i) ended.acquire();
  const double wall_s = weir::Seconds(clock.Now() - begin), cpu_s = CpuSeconds() - cpu_before;
  fmt::print("{{\"per_s\": {}, \"cpu_us\": {}, \"bytes\": {}, \"failed\": {}, \"wall_s\": {}}}\n",
             count / wall_s, 1e6 * cpu_s / count, bytes.load(), failed.load(), wall_s);
  return failed > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--sign") == 0) return Sign(std::atoi(argv[2]));
  if (argc == 5) return Get(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  fmt::print(stderr, "usage: object_get URL KEYS COUNT DEPTH | object_get --sign COUNT\n");
  return 2;
}
