#include "cluster/protocol.h"

#include <fmt/format.h>

#include <utility>

#include "base/fields.h"
#include "base/text.h"

namespace weir::cluster {
namespace {

constexpr int64_t kMostNs = int64_t{1} << 62;  // 146 years: sums of two stay numbers

}  // namespace

namespace word {

template <typename F>
void Describe(F& fields, Described<F, Hello>& hello) {
  fields("name", hello.name);
  fields("build", hello.build);
  fields("rank", hello.rank);
  fields("world", hello.world);
  fields.Require(hello.world >= 0 && hello.world <= kMostHosts, "a world that is none");
  fields.Require(!hello.rank || (*hello.rank >= 0 && *hello.rank < kMostHosts), "a rank that is none");
}

template <typename F>
void Describe(F& fields, Described<F, Welcome>& welcome) {
  fields("rank", welcome.rank);
  fields("world", welcome.world);
  fields.Require(welcome.world >= 1 && welcome.world <= kMostHosts, "a world that is none");
  fields.Require(welcome.rank >= 0 && welcome.rank < welcome.world, "a rank that is not below the world");
}

template <typename F>
void Describe(F& fields, Described<F, Refuse>& refuse) {
  fields("why", refuse.why);
}

template <typename F>
void Describe(F& fields, Described<F, Ping>& ping) {
  fields("n", ping.n);
}

template <typename F>
void Describe(F& fields, Described<F, Pong>& pong) {
  fields("n", pong.n);
  fields("at", pong.at);
  fields.Require(pong.at >= 0 && pong.at < kMostNs, "a time that no clock shows");
}

template <typename F>
void Describe(F& fields, Described<F, Call>& call) {
  fields("id", call.id);
  fields("verb", call.verb);
  fields("body", call.payload.body);
}

template <typename F>
void Describe(F& fields, Described<F, Answer>& answer) {
  fields("id", answer.id);
  fields("body", answer.payload.body);
}

template <typename F>
void Describe(F& fields, Described<F, Fault>& fault) {
  fields("id", fault.id);
  fields("code", fault.code);
  fields("message", fault.message);
  fields.Require(fault.code >= ErrorCode{} && fault.code <= ErrorCode::kInternal, "an unknown code");
}

template <typename F>
void Describe(F&, Described<F, Stop>&) {}

template <typename F>
void Describe(F& fields, Described<F, Arrive>& arrive) {
  fields("step", arrive.step);
  fields("last", arrive.last);
}

template <typename F>
void Describe(F& fields, Described<F, Release>& release) {
  fields("step", release.step);
  fields("last", release.last);
  fields("waited_ns", release.waited_ns);
  fields.Require(release.waited_ns >= 0 && release.waited_ns < kMostNs, "a wait that is none");
}

template <typename F>
void Describe(F&, Described<F, Beat>&) {}

template <typename F>
void Describe(F&, Described<F, Bye>&) {}

namespace {

constexpr char kKindKey[] = "kind";

template <typename W>
Message Write(W& word) {
  Message message{.body = {{kKindKey, W::kKind}}, .block = ""};
  FieldWriter writer(message.body);
  Describe(writer, std::as_const(word));
  if constexpr (requires { word.payload; }) message.block = std::move(word.payload.block);
  return message;
}

template <typename W>
Result<Word> Read(Message& message) {
  W word = TRY_CONTEXT(FieldsFromJson<W>(message.body), fmt::format("a message \"{}\"", W::kKind));
  if constexpr (requires { word.payload; }) {
    word.payload.block = std::move(message.block);
  } else if (!message.block.empty()) {
    return Fail(ErrorCode::kCorrupt, fmt::format("a message \"{}\" with bytes behind it", W::kKind));
  }
  return Word(std::move(word));
}

template <size_t kIndex = 0>
Result<Word> ReadKind(const std::string& kind, Message& message) {
  if constexpr (kIndex == std::variant_size_v<Word>) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("a message of the unknown kind {}: install one weir on all hosts", Quoted(kind)));
  } else {
    using W = std::variant_alternative_t<kIndex, Word>;
    return kind == W::kKind ? Read<W>(message) : ReadKind<kIndex + 1>(kind, message);
  }
}

}  // namespace
}  // namespace word

Message ToMessage(Word word) {
  return std::visit([](auto& each) { return word::Write(each); }, word);
}

Result<Word> WordFrom(Message message) {
  const std::string kind = TRY_CONTEXT(GetString(message.body, word::kKindKey), "a message");
  return word::ReadKind(kind, message);
}

std::string KindOf(const Word& word) {
  return std::visit([](const auto& each) -> std::string { return each.kKind; }, word);
}

}  // namespace weir::cluster
