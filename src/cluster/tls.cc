#include "cluster/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace weir::cluster {
namespace {

constexpr char kIdentity[] = "weir-agent";
using Key = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Key KeyOf(const std::string& token) {
  const std::string text = "weir agent, version 1: " + token;
  Key key;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.data());
  return key;
}

const Key& KeyOf(SSL* ssl) { return *static_cast<const Key*>(SSL_get_app_data(ssl)); }

unsigned CopyKey(SSL* ssl, unsigned char* psk, unsigned most) {
  const Key& key = KeyOf(ssl);
  if (most < key.size()) return 0;
  std::ranges::copy(key, psk);
  return static_cast<unsigned>(key.size());
}

unsigned AskedByClient(SSL* ssl, const char* /*hint*/, char* identity, unsigned most_identity,
                       unsigned char* psk, unsigned most_psk) {
  if (most_identity < sizeof kIdentity) return 0;
  std::memcpy(identity, kIdentity, sizeof kIdentity);
  return CopyKey(ssl, psk, most_psk);
}

unsigned AskedByServer(SSL* ssl, const char* identity, unsigned char* psk, unsigned most) {
  return std::strcmp(identity, kIdentity) == 0 ? CopyKey(ssl, psk, most) : 0;
}

std::string LastWords() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no TLS" : reason;
}

}  // namespace

struct TlsSession::State {
  ~State() {
    SSL_free(ssl);  // and its two BIOs
    SSL_CTX_free(context);
  }
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
  BIO *in = nullptr, *out = nullptr;
  Key key{};
};

Result<std::string> CheckToken(std::string_view text, const std::string& source) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  text =
      begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  if (text.size() < kLeastTokenBytes)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: a token has at least {} characters: \"openssl rand -hex 32 > FILE\" makes one",
                    source, kLeastTokenBytes));
  return std::string(text);
}

Result<std::string> ReadToken(const std::string& path) {
  return CheckToken(TRY_CONTEXT(ReadTextFile(path), "--token-file"), path);
}

TlsSession::TlsSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsSession::~TlsSession() = default;

Result<std::unique_ptr<TlsSession>> TlsSession::Create(Side side, const std::string& token) {
  auto state = std::make_unique<State>();
  state->key = KeyOf(token);
  state->context = SSL_CTX_new(TLS_method());
  if (state->context == nullptr) return Fail(ErrorCode::kInternal, "TLS: " + LastWords());
  SSL_CTX_set_min_proto_version(state->context, TLS1_3_VERSION);
  // A key that is given without a session goes with SHA-256 alone.
  SSL_CTX_set_ciphersuites(state->context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_psk_client_callback(state->context, AskedByClient);
  SSL_CTX_set_psk_server_callback(state->context, AskedByServer);
  SSL_CTX_set_num_tickets(state->context, 0);
  state->ssl = SSL_new(state->context);
  state->in = BIO_new(BIO_s_mem());
  state->out = BIO_new(BIO_s_mem());
  if (state->ssl == nullptr || state->in == nullptr || state->out == nullptr)
    return Fail(ErrorCode::kInternal, "TLS: " + LastWords());
  SSL_set_app_data(state->ssl, &state->key);
  SSL_set_bio(state->ssl, state->in, state->out);
  if (side == Side::kCaller)
    SSL_set_connect_state(state->ssl);
  else
    SSL_set_accept_state(state->ssl);
  auto session = std::unique_ptr<TlsSession>(new TlsSession(std::move(state)));
  if (side == Side::kCaller) TRY_STATUS(session->Receive({}));
  return session;
}

Status TlsSession::Receive(std::string_view bytes) {
  ERR_clear_error();
  if (!bytes.empty()) BIO_write(state_->in, bytes.data(), static_cast<int>(bytes.size()));
  if (established()) return {};
  const int done = SSL_do_handshake(state_->ssl);
  if (done == 1 || SSL_get_error(state_->ssl, done) == SSL_ERROR_WANT_READ) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("TLS: {}: both sides need the same token (--token-file)", LastWords()));
}

bool TlsSession::established() const { return SSL_is_init_finished(state_->ssl) == 1; }

Result<std::string> TlsSession::Read() {
  std::string text;
  if (!established()) return text;
  std::array<char, 16384> piece;
  while (true) {
    const int count = SSL_read(state_->ssl, piece.data(), piece.size());
    if (count > 0) {
      text.append(piece.data(), static_cast<size_t>(count));
      continue;
    }
    const int error = SSL_get_error(state_->ssl, count);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_ZERO_RETURN) return text;
    return Fail(ErrorCode::kIo, fmt::format("TLS: {}", LastWords()));
  }
}

Status TlsSession::Write(std::string_view text) {
  if (text.empty()) return {};
  size_t written = 0;  // to memory: all of it
  if (SSL_write_ex(state_->ssl, text.data(), text.size(), &written) != 1 || written != text.size())
    return Fail(ErrorCode::kIo, fmt::format("TLS: {}", LastWords()));
  return {};
}

std::string TlsSession::TakeOutput() {
  // Read, not reset: BIO_reset clears the memory of the largest message so far.
  std::string bytes(BIO_ctrl_pending(state_->out), '\0');
  if (!bytes.empty()) BIO_read(state_->out, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

}  // namespace weir::cluster
