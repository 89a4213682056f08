// The values: what they hold, how they are found, compared and converted.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <set>

#include "base/json.h"

namespace weir {
namespace {

constexpr size_t kFewMembers = 16;  // so many are searched one by one

[[noreturn]] void WrongKind(const char* wanted, const Json& json) {
  throw JsonError(std::string("type must be ") + wanted + ", but is " + json.type_name());
}

template <typename T>
T Nearest(double number) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(number)) return 0;
  if (number <= static_cast<double>(Limits::min())) return Limits::min();
  if (number >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(number);
}

}  // namespace

// Members in order and, where there are many, an index of their positions by key: a tree, so that no choice
// of keys makes it slow, and positions, so that it holds while the vector grows.
struct Json::Object {
  struct ByKey {
    using is_transparent = void;
    const std::vector<Member>* members;
    bool operator()(uint32_t a, uint32_t b) const { return (*members)[a].key < (*members)[b].key; }
    bool operator()(uint32_t a, std::string_view b) const { return (*members)[a].key < b; }
    bool operator()(std::string_view a, uint32_t b) const { return a < (*members)[b].key; }
  };
  using Index = std::set<uint32_t, ByKey>;

  Object() = default;
  Object(const Object& other) : members(other.members) { MakeIndex(); }

  void MakeIndex() {
    index.reset();
    if (members.size() <= kFewMembers) return;
    index = std::make_unique<Index>(ByKey{&members});
    for (uint32_t i = 0; i < members.size(); ++i) index->insert(i);
  }

  Member* Find(std::string_view key) {
    if (index) {
      const auto found = index->find(key);
      return found == index->end() ? nullptr : &members[*found];
    }
    const auto found = std::ranges::find(members, key, &Member::key);
    return found == members.end() ? nullptr : &*found;
  }

  Member& Add(std::string_view key) {
    members.push_back({std::string(key), Json()});
    if (index)
      index->insert(static_cast<uint32_t>(members.size() - 1));
    else if (members.size() > kFewMembers)
      MakeIndex();
    return members.back();
  }

  void Erase(size_t at) {
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(at));
    MakeIndex();
  }

  std::vector<Member> members;
  std::unique_ptr<Index> index;
};

Json::Json(std::string text) : kind_(Kind::kString), string_(new std::string(std::move(text))) {}

Json::Json(const Json& other) : kind_(other.kind_), integer_(other.integer_) {
  if (kind_ == Kind::kString) string_ = new std::string(*other.string_);
  if (kind_ == Kind::kArray) array_ = new Array(*other.array_);
  if (kind_ == Kind::kObject) object_ = new Object(*other.object_);
}

Json& Json::operator=(const Json& other) { return *this = Json(other); }

// The old value goes last: `other` may be a part of it.
Json& Json::operator=(Json&& other) noexcept {
  Json taken(std::move(other));
  std::swap(kind_, taken.kind_);
  std::swap(integer_, taken.integer_);
  return *this;
}

Json::Json(std::initializer_list<Json> list) : Json() {
  const bool pairs = std::ranges::all_of(
      list, [](const Json& item) { return item.is_array() && item.size() == 2 && item.at(0).is_string(); });
  *this = pairs ? object(list) : array(list);
}

Json Json::array(std::initializer_list<Json> items) {
  Json json;
  json.array_ = new Array(items);
  json.kind_ = Kind::kArray;
  return json;
}

Json Json::object(std::initializer_list<Json> members) {
  Json json;
  json.object_ = new Object;
  json.kind_ = Kind::kObject;
  for (const Json& member : members) json[member.at(0).get<std::string>()] = member.at(1);
  return json;
}

void Json::Destroy() {
  if (kind_ == Kind::kString) delete string_;
  if (kind_ == Kind::kArray) delete array_;
  if (kind_ == Kind::kObject) delete object_;
}

const char* Json::type_name() const {
  switch (kind_) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "boolean";
    case Kind::kInteger:
    case Kind::kUnsigned:
    case Kind::kNumber:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
  }
  return "null";
}

size_t Json::size() const {
  if (kind_ == Kind::kArray) return array_->size();
  if (kind_ == Kind::kObject) return object_->members.size();
  return kind_ == Kind::kNull ? 0 : 1;
}

void Json::clear() {
  if (is_object()) *this = object();
  if (is_array()) *this = array();
  if (is_string()) string_->clear();
}

const Json* Json::Find(std::string_view key) const {
  if (kind_ != Kind::kObject) return nullptr;
  const Member* found = object_->Find(key);
  return found == nullptr ? nullptr : &found->value;
}

const Json* Json::FindOrThrow(std::string_view key) const {
  if (kind_ != Kind::kObject) WrongKind("object", *this);
  return Find(key);
}

Json& Json::operator[](std::string_view key) {
  if (kind_ == Kind::kNull) *this = object();
  if (const Json* found = FindOrThrow(key)) return *const_cast<Json*>(found);
  return object_->Add(key).value;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json null;
  const Json* found = Find(key);
  return found == nullptr ? null : *found;
}

const Json& Json::at(std::string_view key) const {
  const Json* found = FindOrThrow(key);
  if (found == nullptr) throw JsonError("key '" + std::string(key) + "' not found");
  return *found;
}

const Json& Json::Item(size_t index) const {
  if (kind_ != Kind::kArray) WrongKind("array", *this);
  if (index >= array_->size()) throw JsonError("array index " + std::to_string(index) + " is out of range");
  return (*array_)[index];
}

const Json* Json::FindPath(std::string_view path) const {
  const Json* at = this;
  while (at != nullptr && !path.empty()) {
    if (path[0] != '/') return nullptr;
    path.remove_prefix(1);
    const std::string_view step = path.substr(0, path.find('/'));
    path.remove_prefix(step.size());
    if (at->is_array()) {
      size_t index = 0;
      const auto [end, fault] = std::from_chars(step.data(), step.data() + step.size(), index);
      const bool is_there = fault == std::errc() && end == step.data() + step.size() && index < at->size();
      at = is_there ? &at->Item(index) : nullptr;
    } else {
      at = at->Find(step);
    }
  }
  return at;
}

Json::iterator Json::begin() {
  if (kind_ == Kind::kArray) return {array_->data(), false};
  if (kind_ == Kind::kObject && !object_->members.empty()) return {&object_->members.front().value, true};
  return {nullptr, kind_ == Kind::kObject};
}

Json::iterator Json::end() { return begin() + static_cast<std::ptrdiff_t>(is_structured() ? size() : 0); }
Json::const_iterator Json::begin() const { return const_cast<Json*>(this)->begin(); }
Json::const_iterator Json::end() const { return const_cast<Json*>(this)->end(); }
Json::Items<false> Json::items() & { return {begin(), is_object() ? end() : begin()}; }
Json::Items<true> Json::items() const& { return {begin(), is_object() ? end() : begin()}; }

Json::iterator Json::find(std::string_view key) {
  const Json* found = Find(key);
  return found == nullptr ? end() : iterator{const_cast<Json*>(found), true};
}

Json::const_iterator Json::find(std::string_view key) const { return const_cast<Json*>(this)->find(key); }

void Json::push_back(Json value) {
  if (kind_ == Kind::kNull) *this = array();
  if (kind_ != Kind::kArray) WrongKind("array", *this);
  array_->push_back(std::move(value));
}

size_t Json::erase(std::string_view key) {
  const const_iterator found = std::as_const(*this).find(key);
  if (found == std::as_const(*this).end()) return 0;
  erase(found);
  return 1;
}

void Json::erase(const_iterator at) {
  const auto index = static_cast<size_t>(at - std::as_const(*this).begin());
  if (is_object())
    object_->Erase(index);
  else
    erase(index);
}

void Json::erase(size_t index) {
  Item(index);
  array_->erase(array_->begin() + static_cast<std::ptrdiff_t>(index));
}

void Json::update(const Json& other) {
  for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

std::string& Json::Text() {
  if (kind_ != Kind::kString) WrongKind("string", *this);
  return *string_;
}

bool Json::Truth() const {
  if (kind_ != Kind::kBoolean) WrongKind("boolean", *this);
  return integer_ != 0;
}

int64_t Json::Integer() const {
  if (kind_ == Kind::kInteger || kind_ == Kind::kBoolean) return integer_;
  if (kind_ == Kind::kUnsigned) return unsigned_ > INT64_MAX ? INT64_MAX : static_cast<int64_t>(unsigned_);
  return Nearest<int64_t>(Number());
}

uint64_t Json::Unsigned() const {
  if (kind_ == Kind::kUnsigned) return unsigned_;
  if (kind_ == Kind::kInteger || kind_ == Kind::kBoolean)
    return static_cast<uint64_t>(std::max<int64_t>(integer_, 0));
  return Nearest<uint64_t>(Number());
}

double Json::Number() const {
  if (kind_ == Kind::kNumber) return number_;
  if (kind_ == Kind::kUnsigned) return static_cast<double>(unsigned_);
  if (kind_ == Kind::kInteger || kind_ == Kind::kBoolean) return static_cast<double>(integer_);
  WrongKind("number", *this);
}

bool Json::Equal(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_number_float() || b.is_number_float()) return a.Number() == b.Number();
    const bool a_negative = a.kind_ == Kind::kInteger && a.integer_ < 0;
    const bool b_negative = b.kind_ == Kind::kInteger && b.integer_ < 0;
    return a_negative == b_negative && a.unsigned_ == b.unsigned_;
  }
  if (a.kind_ != b.kind_) return false;
  switch (a.kind_) {
    case Kind::kString:
      return *a.string_ == *b.string_;
    case Kind::kArray:
      return *a.array_ == *b.array_;
    case Kind::kObject:
      return a.size() == b.size() && std::ranges::all_of(a.object_->members, [&](const Member& member) {
               const Json* other = b.Find(member.key);
               return other != nullptr && member.value == *other;
             });
    default:
      return a.integer_ == b.integer_;
  }
}

}  // namespace weir
