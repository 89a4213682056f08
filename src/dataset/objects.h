// Pictures and sets that lie in object storage or on a web server.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "dataset/source.h"
#include "image/reject.h"

namespace weir::dataset {

// Returns whether `text` is a URL of s3, http or https.
bool IsObjectUrl(std::string_view text);

// Adds what `url` names to `listing`, as ListInputs describes it.
Status ListObjects(const std::string& url, Listing& listing);

// LoadInput for an input of a store; fetched ahead while inputs are loaded in their order. REQUIRES: its
// store.
image::Accepted<Bytes> LoadObject(const Listing& listing, const Input& input, uint64_t max_bytes);

// Returns a text that changes when the object does: its size and ETag as they were listed. REQUIRES: its
// store.
std::string StateOfObject(const Listing& listing, const Input& input);

// Objects by their URL. Thread-safe.
class ObjectReader {
 public:
  struct Options {
    int retries = 6;
    Duration timeout = 60s;  // of one request
  };
  explicit ObjectReader(Options options);
  ~ObjectReader();

  // Rejects: kMissing, kTooManyBytes, kUnreachable. Blocks.
  image::Accepted<Bytes> Read(const std::string& url, uint64_t max_bytes, const std::stop_token& stop) const;
  // Returns a local copy of what `url` names (object::Localise), or `url` itself if it is a path.
  Result<std::string> CopyOf(const std::string& url, const std::stop_token& stop) const;
  // Asks the store whether `url` can be listed, before the work whose result is to lie there. kUnsupported
  // for a web server; errors as object::RequestLoop has them.
  Status CheckPublish(const std::string& url, const std::stop_token& stop) const;
  // Writes all files of `folder` below `url`, set.json last (object::Upload). Returns how many were sent.
  Result<int64_t> Publish(const std::string& folder, const std::string& url,
                          const std::stop_token& stop) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Returns the folder where a set is made that will be published at `url`.
Result<std::string> StagingFolderOf(const std::string& url);

}  // namespace weir::dataset
