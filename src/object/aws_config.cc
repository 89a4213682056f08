#include "object/aws_config.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <utility>

#include "base/json.h"
#include "object/url.h"
#include "object/xml.h"

namespace weir::object {
namespace {

constexpr Duration kRenewBefore = 5min;
constexpr uint64_t kMaxAnswer = 1 << 20;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  return text;
}

std::string Value(const Environment& environment, const char* name) { return environment(name).value_or(""); }

bool IsTrue(std::string_view text) {
  return text == "true" || text == "TRUE" || text == "1" || text == "YES" || text == "yes";
}

std::string ProfileName(const Environment& environment) {
  const std::string name = Value(environment, "AWS_PROFILE");
  return name.empty() ? "default" : name;
}

std::string PathOf(const Environment& environment, const char* name, const char* below_home) {
  const std::string path = Value(environment, name);
  return path.empty() ? Value(environment, "HOME") + below_home : path;
}

// The settings of the profile in both files; those of credentials count more.
Result<std::map<std::string, std::string>> ReadProfile(const Environment& environment, const ReadText& read) {
  const std::string config = PathOf(environment, "AWS_CONFIG_FILE", "/.aws/config"),
                    secret = PathOf(environment, "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials"),
                    name = ProfileName(environment);
  std::map<std::string, std::string> all;
  bool found = false;
  for (const std::string& path : {config, secret}) {
    const Result<std::string> text = read(path);
    if (!text && text.error().code != ErrorCode::kNotFound) return std::unexpected(text.error());
    if (!text) continue;
    const Profiles profiles = ParseProfiles(*text);
    const auto section = profiles.find(name);
    if (section == profiles.end()) continue;
    found = true;
    for (const auto& [key, value] : section->second) all[key] = value;
  }
  if (!found && !Value(environment, "AWS_PROFILE").empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("AWS_PROFILE names {}, which neither {} nor {} has", name, config, secret));
  }
  return all;
}

std::string TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// The answer of a container's or a machine's role.
Result<std::optional<Credentials>> ParseRole(const HttpResponse& response, std::string_view place) {
  const Result<Json> json = ParseJson(response.body.text());
  if (response.status != 200 || !json || !json->is_object()) {
    return Fail(ErrorCode::kIo, fmt::format("{}: no credentials, status {}", place, response.status));
  }
  Credentials credentials{TextOf(*json, "AccessKeyId"), TextOf(*json, "SecretAccessKey"),
                          TextOf(*json, "Token"), ParseWallTime(TextOf(*json, "Expiration"))};
  if (credentials.access_key.empty() || credentials.secret_key.empty())
    return Fail(ErrorCode::kIo, fmt::format("{}: an answer without credentials", place));
  return credentials;
}

std::string_view HostOf(std::string_view url) {
  const size_t begin = url.find("://");
  if (begin == url.npos) return {};
  url.remove_prefix(begin + 3);
  return url.substr(0, url.find('/'));
}

}  // namespace

Profiles ParseProfiles(std::string_view text) {
  Profiles profiles;
  std::map<std::string, std::string>* section = nullptr;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end), line = Trimmed(whole);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    if (line.starts_with('[')) {
      std::string_view name = Trimmed(line.substr(1, line.find(']') - 1));
      if (name.starts_with("profile ")) name = Trimmed(name.substr(8));
      section = line.contains(']') ? &profiles[std::string(name)] : nullptr;
      continue;
    }
    const size_t equals = line.find('=');
    // A line that begins with a blank belongs to the nested setting above it.
    if (section == nullptr || equals == line.npos || whole.front() == ' ' || whole.front() == '\t') continue;
    (*section)[std::string(Trimmed(line.substr(0, equals)))] = Trimmed(line.substr(equals + 1));
  }
  return profiles;
}

std::optional<Duration> ParseWallTime(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':' || !text.ends_with('Z'))
    return std::nullopt;
  bool good = true;
  const auto number = [&](size_t at, size_t size) {
    int value = 0;
    const char* const end = text.data() + at + size;
    const auto [stop, error] = std::from_chars(text.data() + at, end, value);
    good = good && error == std::errc() && stop == end && value >= 0;
    return value;
  };
  const std::chrono::year_month_day day(std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2))));
  const int hours = number(11, 2), minutes = number(14, 2), seconds = number(17, 2);
  if (!good || !day.ok() || hours > 23 || minutes > 59 || seconds > 60) return std::nullopt;
  return std::chrono::sys_days(day).time_since_epoch() + std::chrono::hours(hours) +
         std::chrono::minutes(minutes) + std::chrono::seconds(seconds);
}

Result<S3Settings> ReadS3Settings(const Environment& environment, const ReadText& read) {
  const std::map<std::string, std::string> profile = TRY(ReadProfile(environment, read));
  const auto pick = [&](std::initializer_list<const char*> names, const char* key) {
    for (const char* name : names) {
      if (std::string value = Value(environment, name); !value.empty()) return value;
    }
    const auto found = profile.find(key);
    return found == profile.end() ? std::string() : found->second;
  };
  S3Settings settings;
  if (const std::string region = pick({"AWS_REGION", "AWS_DEFAULT_REGION"}, "region"); !region.empty()) {
    settings.region = region;
    settings.region_is_given = true;
  }
  settings.endpoint = pick({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, "endpoint_url");
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  settings.path_style = !settings.endpoint.empty();
  settings.is_signed = !IsTrue(Value(environment, "AWS_NO_SIGN_REQUEST"));
  settings.ca_bundle = pick({"AWS_CA_BUNDLE"}, "ca_bundle");
  if (const std::string attempts = pick({"AWS_MAX_ATTEMPTS"}, "max_attempts"); !attempts.empty()) {
    int value = 0;
    const auto [stop, error] = std::from_chars(attempts.data(), attempts.data() + attempts.size(), value);
    if (error != std::errc() || stop != attempts.data() + attempts.size() || value < 1 || value > 100) {
      return Fail(ErrorCode::kInvalidArgument, "AWS_MAX_ATTEMPTS is no number of 1 to 100");
    }
    settings.retries = value - 1;
  }
  if (settings.endpoint.empty()) return settings;
  const ObjectUrl url = TRY_CONTEXT(ParseObjectUrl(settings.endpoint), "AWS_ENDPOINT_URL");
  if (url.scheme == Scheme::kS3 || !url.key.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "AWS_ENDPOINT_URL: write http://HOST[:PORT] or https://HOST[:PORT]");
  }
  if (url.scheme == Scheme::kHttp && !IsLoopback(url.host) && !IsTrue(Value(environment, "AWS_ALLOW_HTTP"))) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("AWS_ENDPOINT_URL: {} would have the data unencrypted on the network; use https, or "
                    "set AWS_ALLOW_HTTP=true",
                    settings.endpoint));
  }
  return settings;
}

CredentialFinder::CredentialFinder(Environment environment, ReadText read, Ask ask, std::string region)
    : environment_(std::move(environment)),
      read_(std::move(read)),
      ask_(std::move(ask)),
      region_(std::move(region)) {}

Result<Credentials> CredentialFinder::Get(Duration wall) {
  // Held while the role is asked: one request for all that wait for it.
  MutexLock lock(mutex_);
  if (kept_ && (!kept_->expires || wall + kRenewBefore < *kept_->expires)) return *kept_;
  Result<std::optional<Credentials>> found = Find();
  if (!found) {
    if (kept_ && wall < *kept_->expires) return *kept_;  // still good: the next request asks again
    return std::unexpected(found.error());
  }
  if (!*found) {
    return Fail(ErrorCode::kInvalidArgument,
                "no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a profile "
                "into ~/.aws/credentials (AWS_PROFILE), or give this machine a role; for public data set "
                "AWS_NO_SIGN_REQUEST=true");
  }
  kept_ = **std::move(found);
  return *kept_;
}

Result<std::optional<Credentials>> CredentialFinder::Find() const {
  Credentials given{Value(environment_, "AWS_ACCESS_KEY_ID"),
                    Value(environment_, "AWS_SECRET_ACCESS_KEY"),
                    Value(environment_, "AWS_SESSION_TOKEN"),
                    {}};
  if (given.access_key.empty() != given.secret_key.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set: set both, or none");
  }
  if (!given.access_key.empty()) return given;
  if (auto found = TRY(OfWebIdentity())) return found;
  if (auto found = TRY(OfProfile())) return found;
  if (auto found = TRY(OfContainer())) return found;
  return OfMachine();
}

// AssumeRoleWithWebIdentity of AWS's STS: how a pod of Kubernetes has a role.
Result<std::optional<Credentials>> CredentialFinder::OfWebIdentity() const {
  const std::string file = Value(environment_, "AWS_WEB_IDENTITY_TOKEN_FILE"),
                    role = Value(environment_, "AWS_ROLE_ARN");
  if (file.empty() || role.empty()) return std::nullopt;
  const std::string token(Trimmed(TRY_CONTEXT(read_(file), "AWS_WEB_IDENTITY_TOKEN_FILE")));
  std::string session = Value(environment_, "AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "weir";
  std::string host = Value(environment_, "AWS_ENDPOINT_URL_STS");
  if (host.empty()) host = fmt::format("https://sts.{}.amazonaws.com", region_);
  HttpRequest request{.method = "POST",
                      .url = host + "/",
                      .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                      .body = Bytes::Copy(CanonicalQuery({{"Action", "AssumeRoleWithWebIdentity"},
                                                          {"RoleArn", role},
                                                          {"RoleSessionName", session},
                                                          {"Version", "2011-06-15"},
                                                          {"WebIdentityToken", token}})),
                      .max_bytes = kMaxAnswer,
                      .timeout = 10s};
  const HttpResponse response = TRY_CONTEXT(ask_(std::move(request)), "the role of AWS_ROLE_ARN");
  const auto texts = ParseXml(response.body.text());
  if (response.status != 200 || !texts) {
    return Fail(ErrorCode::kIo,
                fmt::format("the role of AWS_ROLE_ARN was not given: status {} {}", response.status,
                            texts ? FindText(*texts, "ErrorResponse/Error/Code") : ""));
  }
  const std::string base = "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/";
  Credentials found{FindText(*texts, base + "AccessKeyId"), FindText(*texts, base + "SecretAccessKey"),
                    FindText(*texts, base + "SessionToken"),
                    ParseWallTime(FindText(*texts, base + "Expiration"))};
  if (found.access_key.empty() || found.secret_key.empty())
    return Fail(ErrorCode::kIo, "the role of AWS_ROLE_ARN: an answer without credentials");
  return found;
}

Result<std::optional<Credentials>> CredentialFinder::OfProfile() const {
  std::map<std::string, std::string> profile = TRY(ReadProfile(environment_, read_));
  Credentials found{
      profile["aws_access_key_id"], profile["aws_secret_access_key"], profile["aws_session_token"], {}};
  if (found.access_key.empty() || found.secret_key.empty()) return std::nullopt;
  return found;
}

// The agent of ECS or of EKS Pod Identity.
Result<std::optional<Credentials>> CredentialFinder::OfContainer() const {
  const std::string relative = Value(environment_, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  std::string url = Value(environment_, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative.empty()) url = "http://169.254.170.2" + relative;
  if (url.empty()) return std::nullopt;
  const std::string_view host = HostOf(url);
  const bool near =
      IsLoopback(host) || host == "169.254.170.2" || host == "169.254.170.23" || host == "[fd00:ec2::23]";
  if (!near && !url.starts_with("https://")) {
    return Fail(ErrorCode::kInvalidArgument,
                "AWS_CONTAINER_CREDENTIALS_FULL_URI: plain HTTP to another machine than the agent's");
  }
  HttpRequest request{.url = url, .max_bytes = kMaxAnswer, .timeout = 5s, .use_proxy = false};
  std::string token = Value(environment_, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = Value(environment_, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty())
    token = Trimmed(TRY_CONTEXT(read_(file), "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
  if (!token.empty()) request.headers.emplace_back("Authorization", token);
  return ParseRole(TRY_CONTEXT(ask_(std::move(request)), "the container's role"), "the container's role");
}

// The instance metadata service, version 2 (a token first), of a machine in AWS.
Result<std::optional<Credentials>> CredentialFinder::OfMachine() const {
  if (IsTrue(Value(environment_, "AWS_EC2_METADATA_DISABLED"))) return std::nullopt;
  std::string base = Value(environment_, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (base.empty()) base = "http://169.254.169.254";
  while (base.ends_with('/')) base.pop_back();
  const auto ask = [&](const char* method, const std::string& path, std::vector<Header> headers) {
    return ask_({.method = method,
                 .url = base + path,
                 .headers = std::move(headers),
                 .max_bytes = kMaxAnswer,
                 .timeout = 1s,
                 .use_proxy = false});
  };
  const auto token = ask("PUT", "/latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}});
  if (!token || token->status != 200) return std::nullopt;  // not a machine in AWS
  const std::vector<Header> header{{"X-aws-ec2-metadata-token", std::string(token->body.text())}};
  const std::string roles = "/latest/meta-data/iam/security-credentials/";
  const auto role = ask("GET", roles, header);
  if (!role || role->status != 200) return std::nullopt;
  const std::string_view names = role->body.text();
  const std::string name(Trimmed(names.substr(0, names.find('\n'))));
  if (name.empty()) return std::nullopt;
  return ParseRole(TRY_CONTEXT(ask("GET", roles + name, header), "this machine's role"),
                   "this machine's role");
}

}  // namespace weir::object
