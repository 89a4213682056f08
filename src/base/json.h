// JSON as values. Keys keep the order in which they were put in. What comes from outside is read by
// ParseJson, which takes time and memory in proportion to the text and has limits; the header is light,
// because most files include it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace weir {

class Json;

// Thrown by Json::at and Json::get where a value is missing or of another kind. Callers test first; the few
// that do not catch it.
class JsonError : public std::exception {
 public:
  explicit JsonError(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// A value: null, true or false, a whole number (signed or, as read from text, unsigned), a number, text, an
// array or an object. One thread at a time, as a container of the standard library.
//
// An object finds a key in logarithmic time however many it has, so members that a stranger chose cost no
// more than others.
class Json {
  struct Object;
  struct Member;

 public:
  // Walks an array's items or an object's values; key() is the member's name. A value that has neither is
  // empty. Invalid after an insertion.
  template <bool kConst>
  class Iterator;
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;
  // A range of (key, value) over an object.
  template <bool kConst>
  class Items;

  Json() noexcept : kind_(Kind::kNull), integer_(0) {}
  Json(std::nullptr_t) noexcept : Json() {}
  Json(const Json& other);
  Json(Json&& other) noexcept : kind_(std::exchange(other.kind_, Kind::kNull)), integer_(other.integer_) {}
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json() {
    if (kind_ >= Kind::kString) Destroy();
  }

  Json(std::same_as<bool> auto truth) noexcept : kind_(Kind::kBoolean), integer_(truth) {}
  template <std::signed_integral T>
  Json(T number) noexcept : kind_(Kind::kInteger), integer_(number) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Json(T number) noexcept : kind_(Kind::kUnsigned), unsigned_(number) {}
  template <std::floating_point T>
  Json(T number) noexcept : kind_(Kind::kNumber), number_(number) {}
  template <typename T>
    requires std::is_enum_v<T>
  Json(T value) noexcept : Json(static_cast<std::underlying_type_t<T>>(value)) {}
  Json(std::string text);
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}
  // An array of a range's items, or an object where the items are pairs of a key and a value.
  template <typename Range>
    requires(!std::convertible_to<const Range&, std::string_view> &&
             !std::convertible_to<const Range&, std::string> && !std::same_as<Range, Json>) &&
            requires(const Range& range) {
              std::begin(range);
              std::end(range);
            }
  Json(const Range& range) : Json() {
    if constexpr (requires { typename Range::mapped_type; }) {
      *this = object();
      for (const auto& [key, value] : range) (*this)[key] = Json(value);
    } else {
      *this = array();
      // NOLINTNEXTLINE: std::vector<bool> gives proxies
      for (auto&& item : range) push_back(Json(static_cast<typename Range::value_type>(item)));
    }
  }
  // {{"a", 1}, {"b", 2}} is an object, as every item is a list of a text and a value; any other list an
  // array.
  Json(std::initializer_list<Json> list);

  static Json array(std::initializer_list<Json> items = {});
  static Json object(std::initializer_list<Json> members = {});

  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_boolean() const { return kind_ == Kind::kBoolean; }
  bool is_number() const { return kind_ >= Kind::kInteger && kind_ <= Kind::kNumber; }
  bool is_number_integer() const { return kind_ == Kind::kInteger || kind_ == Kind::kUnsigned; }
  bool is_number_unsigned() const { return kind_ == Kind::kUnsigned; }
  bool is_number_float() const { return kind_ == Kind::kNumber; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_structured() const { return kind_ >= Kind::kArray; }
  const char* type_name() const;  // "null", "boolean", "number", "string", "array", "object"

  // Items or members; 0 for null, 1 for any other value.
  size_t size() const;
  bool empty() const { return size() == 0; }
  void clear();

  // Null becomes an object, and a key that is missing gets null.
  Json& operator[](std::string_view key);
  Json& operator[](const char* key) { return (*this)[std::string_view(key)]; }
  Json& operator[](const std::string& key) { return (*this)[std::string_view(key)]; }
  // A null that lives for ever where the key is missing.
  const Json& operator[](std::string_view key) const;
  const Json& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Json& operator[](const std::string& key) const { return (*this)[std::string_view(key)]; }
  // An array's item; throws JsonError where there is none.
  template <std::integral I>
  Json& operator[](I index) {
    return at(static_cast<size_t>(index));
  }
  template <std::integral I>
  const Json& operator[](I index) const {
    return at(static_cast<size_t>(index));
  }
  // Throw JsonError where there is no such member or item.
  Json& at(std::string_view key) { return const_cast<Json&>(std::as_const(*this).at(key)); }
  const Json& at(std::string_view key) const;
  Json& at(const char* key) { return at(std::string_view(key)); }
  const Json& at(const char* key) const { return at(std::string_view(key)); }
  template <std::integral I>
  Json& at(I index) {
    return const_cast<Json&>(Item(static_cast<size_t>(index)));
  }
  template <std::integral I>
  const Json& at(I index) const {
    return Item(static_cast<size_t>(index));
  }
  // The value at a path of keys and positions, as "/levels/0/rate"; nullptr where there is none.
  Json* FindPath(std::string_view path) { return const_cast<Json*>(std::as_const(*this).FindPath(path)); }
  const Json* FindPath(std::string_view path) const;

  bool contains(std::string_view key) const { return Find(key) != nullptr; }
  size_t count(std::string_view key) const { return contains(key) ? 1 : 0; }
  iterator find(std::string_view key);
  const_iterator find(std::string_view key) const;
  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;
  Items<false> items() &;
  Items<true> items() const&;
  Items<true> items() && = delete;  // would outlive its object in a range-for
  Json& front() { return at(0); }
  const Json& front() const { return at(0); }
  Json& back() { return at(size() - 1); }
  const Json& back() const { return at(size() - 1); }

  // Null becomes an array.
  void push_back(Json value);
  template <typename... Arguments>
  Json& emplace_back(Arguments&&... arguments) {
    push_back(Json(std::forward<Arguments>(arguments)...));
    return back();
  }
  size_t erase(std::string_view key);  // returns how many went
  void erase(const_iterator at);       // of an object or an array
  void erase(size_t index);            // of an array
  void update(const Json& other);      // members of `other` are put in, or replace those of their key
  void swap(Json& other) noexcept { std::swap(*this, other); }

  // The value as T: a truth, a number (another kind of number is converted; one that T cannot hold becomes
  // T's nearest), text, a vector of these, Json. Throws JsonError where it is of another kind.
  template <typename T>
  T get() const;
  // The value's own text; throws JsonError where it is none.
  template <typename Reference>
  Reference get_ref() {
    return Text();
  }
  template <typename Reference>
  Reference get_ref() const {
    static_assert(std::is_const_v<std::remove_reference_t<Reference>>);
    return const_cast<Json*>(this)->Text();
  }
  // The member `key` as the default's type, or the default. Throws JsonError as get() does, and where this is
  // no object.
  template <typename T>
  T value(std::string_view key, const T& otherwise) const {
    const Json* found = FindOrThrow(key);
    return found != nullptr ? found->get<T>() : otherwise;
  }
  std::string value(std::string_view key, const char* otherwise) const {
    const Json* found = FindOrThrow(key);
    return found != nullptr ? found->get<std::string>() : otherwise;
  }

  // Numbers are equal by their value, objects where they have equal members in any order.
  friend bool operator==(const Json& a, const Json& b) { return Equal(a, b); }
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  friend class JsonReader;
  enum class Kind : uint8_t { kNull, kBoolean, kInteger, kUnsigned, kNumber, kString, kArray, kObject };
  using Array = std::vector<Json>;

  static bool Equal(const Json& a, const Json& b);
  void Destroy();
  const Json* Find(std::string_view key) const;
  const Json* FindOrThrow(std::string_view key) const;
  const Json& Item(size_t index) const;
  std::string& Text();
  bool Truth() const;
  int64_t Integer() const;    // the nearest
  uint64_t Unsigned() const;  // the nearest
  double Number() const;

  Kind kind_;
  union {
    int64_t integer_;  // and a truth
    uint64_t unsigned_;
    double number_;
    std::string* string_;
    Array* array_;
    Object* object_;
  };
};

struct Json::Member {
  std::string key;
  Json value;
};

// `stride` bytes apart lie the Json values of an array, or those of an object's members.
template <bool kConst>
class Json::Iterator {
  using Byte = std::conditional_t<kConst, const char, char>;

 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  using reference = std::conditional_t<kConst, const Json&, Json&>;
  using pointer = std::conditional_t<kConst, const Json*, Json*>;

  Iterator() = default;
  Iterator(pointer at, bool of_object) : at_(at), stride_(of_object ? sizeof(Member) : sizeof(Json)) {}
  operator Iterator<true>() const { return {at_, stride_ == sizeof(Member)}; }  // NOLINT

  reference operator*() const { return *at_; }
  pointer operator->() const { return at_; }
  reference operator[](difference_type n) const { return *(*this + n); }
  // Gives the name of an object's member; of nothing else.
  const std::string& key() const {
    return reinterpret_cast<const Member*>(reinterpret_cast<const char*>(at_) - offsetof(Member, value))->key;
  }
  reference value() const { return *at_; }

  Iterator& operator+=(difference_type n) {
    at_ = reinterpret_cast<pointer>(reinterpret_cast<Byte*>(at_) + n * stride_);
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this += -1; }
  Iterator operator++(int) {
    Iterator before = *this;
    *this += 1;
    return before;
  }
  Iterator operator--(int) {
    Iterator before = *this;
    *this -= 1;
    return before;
  }
  friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
  friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
  friend Iterator operator-(Iterator a, difference_type n) { return a -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) {
    return (reinterpret_cast<const char*>(a.at_) - reinterpret_cast<const char*>(b.at_)) / a.stride_;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }

 private:
  friend class Json;
  pointer at_ = nullptr;
  std::ptrdiff_t stride_ = sizeof(Json);
};

template <bool kConst>
class Json::Items {
  using Inner = Iterator<kConst>;

 public:
  struct Item {
    const std::string& key_;
    typename Inner::reference value_;
    const std::string& key() const { return key_; }
    typename Inner::reference value() const { return value_; }
  };
  class iterator {
   public:
    explicit iterator(Inner at) : at_(at) {}
    Item operator*() const { return {at_.key(), *at_}; }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const iterator&) const = default;

   private:
    Inner at_;
  };

  Items(Inner begin, Inner end) : begin_(begin), end_(end) {}
  iterator begin() const { return iterator(begin_); }
  iterator end() const { return iterator(end_); }

 private:
  Inner begin_, end_;
};

namespace internal {
template <typename T>
constexpr bool kIsJsonList = false;
template <typename T>
constexpr bool kIsJsonList<std::vector<T>> = true;
}  // namespace internal

template <typename T>
T Json::get() const {
  if constexpr (std::same_as<T, Json>) {
    return *this;
  } else if constexpr (std::same_as<T, bool>) {
    return Truth();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(get<std::underlying_type_t<T>>());
  } else if constexpr (std::signed_integral<T>) {
    const int64_t number = Integer();
    using Limits = std::numeric_limits<T>;
    return static_cast<T>(number < Limits::min()   ? Limits::min()
                          : number > Limits::max() ? Limits::max()
                                                   : number);
  } else if constexpr (std::unsigned_integral<T>) {
    const uint64_t number = Unsigned();
    using Limits = std::numeric_limits<T>;
    return static_cast<T>(number > Limits::max() ? Limits::max() : number);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(Number());
  } else if constexpr (internal::kIsJsonList<T>) {
    if (!is_array()) throw JsonError(std::string("type must be array, but is ") + type_name());
    T list;
    list.reserve(size());
    for (const Json& item : *this) list.push_back(item.get<typename T::value_type>());
    return list;
  } else {
    static_assert(std::same_as<T, std::string>);
    return const_cast<Json*>(this)->Text();
  }
}

// Limits of a text from outside. ParseJson refuses what passes one before it takes memory for more.
struct JsonLimits {
  size_t bytes = size_t{1} << 31;  // of the text
  size_t values = SIZE_MAX;        // in all: members and items, however deep
  int depth = 200;
};

// kCorrupt, with the position, for text that is not JSON or passes a limit. Time and memory grow in
// proportion to the text. Of members with one key the last counts.
Result<Json> ParseJson(std::string_view text, const JsonLimits& limits = {});

// One line, or indented by two. File names go through EscapeBytes first: any other bytes that are not UTF-8
// become U+FFFD here, so that output is always JSON. Numbers that are not finite become null.
std::string DumpJson(const Json& json);
std::string DumpJsonIndented(const Json& json);

// Text that JSON can hold, for raw bytes such as file names: bytes that are not UTF-8 become "\xNN" and a
// backslash becomes "\\", so UnescapeBytes gives the same bytes again. Plain names come back unchanged.
std::string EscapeBytes(std::string_view bytes);
Result<std::string> UnescapeBytes(std::string_view text);

// Words of others for a terminal, which control characters could make do anything: as EscapeBytes has them,
// and those as "\xNN" too, but for line breaks and tabs.
std::string EscapeForTerminal(std::string_view bytes);

// Puts `value` under `key` when there is one: an undefined value is absent, never 0.
template <typename T>
void PutIfAny(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

// The member `key`, of the wanted kind; kCorrupt naming the key otherwise.
Result<std::string> GetString(const Json& json, std::string_view key);
Result<int64_t> GetInteger(const Json& json, std::string_view key);
Result<double> GetNumber(const Json& json, std::string_view key);

}  // namespace weir
