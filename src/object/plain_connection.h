// Connections for the plain case, an unencrypted GET whose answer says its length: the bytes go from the
// socket into the body's own memory. Everything else goes through curl, which takes twice the CPU time for
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/file.h"
#include "object/transport.h"

namespace weir::object {

struct PlainTarget {
  std::string_view authority;  // "HOST[:PORT]"
  std::string_view path;       // with its query
};
// Returns the parts of the request's URL, which has to outlive them; nullopt where curl has to send it:
// another scheme or method than http and GET, and a URL that is not to be sent as it stands.
std::optional<PlainTarget> PlainTargetOf(const HttpRequest& request);

struct AnswerHead {
  int status = 0;
  std::map<std::string, std::string, std::less<>> headers;  // as HttpResponse has them
  uint64_t length = 0;                                      // of the body
  bool keep_alive = true;
};
// `head` is the status line and the header lines, with the ends of their lines. nullopt for an answer that
// only curl understands: one that does not say its length, another version of HTTP, and what is no HTTP.
std::optional<AnswerHead> ParseAnswerHead(std::string_view head);

// One connected socket, which does not block. One thread at a time.
class PlainConnection {
 public:
  enum class Progress {
    kUnderWay,
    kWhole,     // Take() has the answer
    kForCurl,   // an answer that only curl understands: the request has to be sent again
    kTooLarge,  // more than HttpRequest::max_bytes
    kEnded      // the connection broke, or the server closed it
  };

  PlainConnection(UniqueFd socket, std::string_view authority)
      : socket_(std::move(socket)), authority_(authority) {}

  const std::string& authority() const { return authority_; }
  int fd() const { return socket_.get(); }
  // Returns whether a request may go this way: nothing has come since the last answer, not even the end.
  bool IsQuiet() const;
  // Returns false where the socket did not take the whole request: the connection is then of no use.
  // REQUIRES: no answer is under way.
  bool Send(const HttpRequest& request, const PlainTarget& target);
  // To be called when the socket has bytes. REQUIRES: Send, and every call so far returned kUnderWay.
  Progress Read();
  bool begun() const { return begun_; }        // some bytes of the answer have come
  bool was_used() const { return was_used_; }  // has carried an answer before
  // REQUIRES: Read returned kWhole.
  HttpResponse Take();
  bool may_carry_another() const { return head_.keep_alive; }

 private:
  std::optional<Progress> TakeHead();

  const UniqueFd socket_;
  const std::string authority_;
  bool begun_ = false, was_used_ = false, follows_redirects_ = false;
  uint64_t max_bytes_ = 0;
  std::string text_;  // of the head, and what came with it
  bool has_head_ = false;
  AnswerHead head_;
  Bytes body_;
  size_t filled_ = 0;  // of it
};

}  // namespace weir::object
