// Settings and credentials from the places where AWS's own tools look: the environment, ~/.aws/config and
// ~/.aws/credentials, a web identity token, a container's or machine's role.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "object/transport.h"

namespace weir::object {

// The value of an environment variable, where it has one.
using Environment = std::function<std::optional<std::string>(const char* name)>;
// The text of a file; kNotFound where it is not there.
using ReadText = std::function<Result<std::string>(const std::string& path)>;
// One request and its response; blocks.
using Ask = std::function<Result<HttpResponse>(HttpRequest request)>;

// Sections of an INI file, by name: "default", "work" (of "profile work" too).
using Profiles = std::map<std::string, std::map<std::string, std::string>, std::less<>>;
// Lines that are neither a section, a setting nor a comment are passed over, as AWS's tools do.
Profiles ParseProfiles(std::string_view text);

struct S3Settings {
  std::string region = "us-east-1";
  bool region_is_given = false;
  std::string endpoint;     // "https://HOST[:PORT]" of another store than AWS's; empty: AWS
  bool path_style = false;  // ENDPOINT/BUCKET/KEY, not BUCKET.ENDPOINT/KEY
  bool is_signed = true;    // false with AWS_NO_SIGN_REQUEST=true
  std::string ca_bundle;    // AWS_CA_BUNDLE
  int retries = 6;          // AWS_MAX_ATTEMPTS, less the first
};

// kInvalidArgument for an endpoint that is no URL, for plain HTTP to another machine unless AWS_ALLOW_HTTP is
// true, and for a profile that is not there.
Result<S3Settings> ReadS3Settings(const Environment& environment, const ReadText& read);

// Finds credentials and renews those that expire, five minutes before. Thread-safe.
class CredentialFinder {
 public:
  CredentialFinder(Environment environment, ReadText read, Ask ask, std::string region);

  // `wall` counts from 1970. kInvalidArgument lists the places where nothing was; no message holds a secret.
  // May block for a request to the machine's or container's role.
  Result<Credentials> Get(Duration wall) EXCLUDES(mutex_);

 private:
  Result<std::optional<Credentials>> Find() const;
  Result<std::optional<Credentials>> OfWebIdentity() const;
  Result<std::optional<Credentials>> OfProfile() const;
  Result<std::optional<Credentials>> OfContainer() const;
  Result<std::optional<Credentials>> OfMachine() const;

  const Environment environment_;
  const ReadText read_;
  const Ask ask_;
  const std::string region_;
  Mutex mutex_;
  std::optional<Credentials> kept_ GUARDED_BY(mutex_);
};

// Returns the seconds since 1970 of "2026-11-24T01:02:03Z"; nullopt for another form.
std::optional<Duration> ParseWallTime(std::string_view text);

}  // namespace weir::object
