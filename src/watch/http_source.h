// MJPEG over HTTP, as network cameras serve it.
#pragma once

#include <string>

#include "base/file.h"
#include "watch/multipart.h"
#include "watch/source.h"

namespace weir::watch {

class HttpSource final : public Source {
 public:
  // kInvalidArgument names what is wrong with the URL "http://[USER:PASSWORD@]HOST[:PORT]/PATH".
  static Result<std::unique_ptr<Source>> Create(const StreamSpec& spec, const SourceOptions& options,
                                                const Clock& clock);

  Status Connect(Instant until) override;
  Result<std::optional<SourceFrame>> Read(Instant until) override;

 private:
  struct Address {
    std::string server, host, path, credentials;
  };
  HttpSource(Address address, const SourceOptions& options, const Clock& clock)
      : address_(std::move(address)), options_(options), clock_(clock) {}
  Status WaitFor(short events, Instant until) const;
  Result<bool> Receive(Instant until);  // false: the server closed

  const Address address_;
  const SourceOptions options_;
  const Clock& clock_;
  UniqueFd socket_;
  std::optional<MultipartReader> reader_;
};

}  // namespace weir::watch
