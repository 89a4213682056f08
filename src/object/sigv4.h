// Signatures of requests to S3 (AWS Signature Version 4, docs.aws.amazon.com/AmazonS3/latest/API/
// sig-v4-header-based-auth.html). A pure function of its inputs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace weir::object {

// A value. Never printed, and never part of an error.
struct Credentials {
  std::string access_key, secret_key;
  std::string session_token;        // empty: long-lived credentials
  std::optional<Duration> expires;  // wall time since 1970

  bool operator==(const Credentials&) const = default;
};

using Header = std::pair<std::string, std::string>;  // name, value

// The request as it will stand on the wire.
struct SignRequest {
  std::string method = "GET";
  std::string path = "/";       // encoded
  std::vector<Header> query;    // raw names and values, in any order
  std::vector<Header> headers;  // with Host; the names in any case; all of them are signed
  std::string payload_hash;     // SHA-256 in hex, or UNSIGNED-PAYLOAD
};

struct SignScope {
  std::string timestamp;  // "20130524T000000Z"
  std::string region = "us-east-1";
  std::string service = "s3";
};

// Keeps the key that depends on day, region and service alone, which is three of the four hashes. One thread
// at a time.
class Signer {
 public:
  // Returns the value of the header Authorization. REQUIRES: the headers hold x-amz-date with the scope's
  // timestamp, and the session token if there is one.
  std::string Authorization(const SignRequest& request, const SignScope& scope,
                            const Credentials& credentials);

 private:
  std::string key_for_, key_;
};

// Returns the canonical form of a query: names and values encoded and sorted, joined by '&'.
std::string CanonicalQuery(const std::vector<Header>& query);

// Returns the wall time as signatures have it: "20130524T000000Z". `wall` counts from 1970.
std::string SignTimestamp(Duration wall);

// SHA-256 as 64 hex digits.
std::string Sha256Hex(std::string_view bytes);
// MD5 as 16 raw bytes, which S3 makes ETags of.
std::string Md5(std::string_view bytes);
std::string ToHex(std::string_view bytes);

}  // namespace weir::object
