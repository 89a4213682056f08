// TLS 1.3 between an agent and rank 0, with the shared token as the key of both: no certificate is needed,
// and each side knows that the other holds the token. Bytes in, bytes out; no socket.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::cluster {

enum class Side { kListener, kCaller };

constexpr size_t kLeastTokenBytes = 16;

// Reads a token: the file's text without blanks at its ends. kInvalidArgument below kLeastTokenBytes.
Result<std::string> ReadToken(const std::string& path);
Result<std::string> CheckToken(std::string_view text, const std::string& source);

// One thread at a time.
class TlsSession {
 public:
  static Result<std::unique_ptr<TlsSession>> Create(Side side, const std::string& token);
  ~TlsSession();

  // Takes bytes that came from the other side, and goes on with the handshake. kInvalidArgument if the other
  // side has another token, or speaks no TLS.
  Status Receive(std::string_view bytes);
  bool established() const;
  // Returns what the other side has written so far. Empty while the handshake goes on.
  Result<std::string> Read();
  // REQUIRES: established.
  Status Write(std::string_view text);
  // Returns bytes that are to be sent to the other side now.
  std::string TakeOutput();

 private:
  struct State;
  explicit TlsSession(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace weir::cluster
