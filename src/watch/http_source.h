// MJPEG over HTTP, as network cameras serve it.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "watch/multipart.h"
#include "watch/source.h"
#include "watch/stream_url.h"

namespace weir::watch {

// Follows redirections to http://, and answers Digest and Basic challenges.
class HttpSource final : public Source {
 public:
  // kInvalidArgument names what is wrong with the URL "http://[USER:PASSWORD@]HOST[:PORT]/PATH".
  static Result<std::unique_ptr<Source>> Create(const StreamSpec& spec, const SourceOptions& options,
                                                const Clock& clock);

  Status Connect(Instant until) override;
  Result<std::optional<SourceFrame>> Read(Instant until) override;

 private:
  HttpSource(StreamUrl url, const SourceOptions& options, const Clock& clock)
      : url_(std::move(url)), options_(options), clock_(clock), at_(url_) {}
  Status Send(Instant until);
  Result<bool> Receive(Instant until);  // false: the server closed
  Status Follow(const Error& refusal);
  Status Authorize(const std::vector<std::string>& challenges, const Error& refusal);
  Status Redirect(const std::string& location);
  SourceFrame FrameOf(MultipartReader::Part part) const;

  const StreamUrl url_;
  const SourceOptions options_;
  const Clock& clock_;
  StreamUrl at_;  // url_, or where it was redirected to
  int hops_ = 0;  // requests since Connect that were answered by a challenge or a redirection
  std::string authorization_;
  UniqueFd socket_;
  std::optional<MultipartReader> reader_;
};

}  // namespace weir::watch
