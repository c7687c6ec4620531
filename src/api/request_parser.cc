#include "api/request_parser.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <bit>
#include <optional>

#include "base/check.h"

namespace turnstile {
namespace {

namespace dom = simdjson::dom;
static_assert(simdjson::SIMDJSON_PADDING <= RequestParser::kBodyPadding);

// What a body may be on most paths (http's default limit); a larger one makes the parser grow once.
constexpr size_t kFirstCapacity = 64 * 1024;

std::string not_json(simdjson::error_code error) {
  // simdjson's own words do not tell that a number can be good JSON and yet too large.
  if (error == simdjson::NUMBER_ERROR)
    return "the body has a number that is malformed, an integer beyond 64 bits, or beyond what a double "
           "holds";
  return fmt::format("the body is not valid JSON in UTF-8: {}", simdjson::error_message(error));
}

// The value of one known field, if it is of the right type.
std::optional<ApiError> read_value(dom::element value, Field field, Fields& fields) {
  const auto wrong = [field](std::string_view kind) {
    return make_error(ErrorCode::invalid, fmt::format("\"{}\" must be {}", name_of(field), kind));
  };
  switch (kind_of(field)) {
    case FieldKind::text: {
      std::string_view text;
      if (value.get(text)) return wrong("a string");
      fields.set_text(field, text);
      return std::nullopt;
    }
    case FieldKind::integer: {
      if (value.type() != dom::element_type::INT64 && value.type() != dom::element_type::UINT64)
        return wrong("an integer, without quotes, fraction or exponent");
      uint64_t number = 0;
      fields.set_number(field, value.get(number) ? kOutsideEveryRange : number);  // no uint64_t: below 0
      return std::nullopt;
    }
    case FieldKind::boolean: {
      bool truth = false;
      if (value.get(truth)) return wrong("true or false");
      fields.set_number(field, truth);
      return std::nullopt;
    }
  }
  return wrong("something else");
}

// All fields of `object` that are in `known`; nothing else in it matters.
std::optional<ApiError> read_fields(dom::object object, FieldSet known, Fields& fields) {
  fields.clear();
  for (const dom::key_value_pair pair : object) {
    const std::optional<Field> field = find_field(pair.key);
    if (!field || !known.has(*field)) continue;
    if (!fields.see(*field))
      return make_error(ErrorCode::invalid, fmt::format("\"{}\" occurs twice: say it once", name_of(*field)));
    if (pair.value.is_null()) continue;
    if (std::optional<ApiError> error = read_value(pair.value, *field, fields)) return error;
  }
  return std::nullopt;
}

}  // namespace

struct RequestParser::Json {
  dom::parser parser;
  Fields fields;
  dom::array batch;
  dom::array::iterator next{};
  size_t left = 0;  // requests of the batch not yet taken

  // simdjson would grow to exactly what each body needs, and so again with the next one.
  void grow(size_t capacity) {
    TS_CHECK(!parser.allocate(capacity) && !parser.doc.allocate(capacity),
             "there is memory for a request's body");
  }

  ApiResult<dom::object> object(std::string_view body) {
    left = 0;
    if (body.empty()) return invalid("the body is empty: send a JSON object");
    if (body.size() > parser.capacity()) grow(std::bit_ceil(body.size()));
    dom::element root;
    // Not copied: the caller promises the padding.
    if (const auto error = parser.parse(body.data(), body.size(), false).get(root))
      return invalid(not_json(error));
    dom::object object;
    if (root.get(object)) return invalid("the body must be a JSON object: {...}");
    return object;
  }
};

RequestParser::RequestParser(const ApiLimits& limits) : limits_(limits), json_(std::make_unique<Json>()) {
  json_->grow(kFirstCapacity);
}
RequestParser::~RequestParser() = default;

template <class Make>
auto RequestParser::parse(std::string_view body, FieldSet known, Make make)
    -> decltype(make(Fields(), ApiLimits())) {
  const ApiResult<dom::object> object = json_->object(body);
  if (!object) return std::unexpected(object.error());
  if (std::optional<ApiError> error = read_fields(*object, known, json_->fields))
    return std::unexpected(*std::move(error));
  return make(json_->fields, limits_);
}

ApiResult<LockRequest> RequestParser::parse_lock(std::string_view body) {
  return parse(body, kLockFields, make_lock);
}
ApiResult<UnlockCommand> RequestParser::parse_unlock(std::string_view body) {
  return parse(body, kUnlockFields, make_unlock);
}
ApiResult<RenewCommand> RequestParser::parse_renew(std::string_view body) {
  return parse(body, kRenewFields, make_renew);
}
ApiResult<CancelCommand> RequestParser::parse_cancel(std::string_view body) {
  return parse(body, kCancelFields, make_cancel);
}
ApiResult<StatusCommand> RequestParser::parse_status(std::string_view body) {
  return parse(body, kStatusFields, make_status);
}
ApiResult<BreakCommand> RequestParser::parse_break(std::string_view body) {
  return parse(body, kBreakFields, make_break);
}
ApiResult<ForgetCommand> RequestParser::parse_forget(std::string_view body) {
  return parse(body, kForgetFields, make_forget);
}
ApiResult<ReferenceCommand> RequestParser::parse_reference(std::string_view body) {
  return parse(body, kReferenceFields, make_reference);
}
ApiResult<NodeId> RequestParser::parse_release_node(std::string_view body) {
  return parse(body, FieldSet(Field::node_id), make_release_node);
}

ApiResult<size_t> RequestParser::parse_batch(std::string_view body) {
  const ApiResult<dom::object> object = json_->object(body);
  if (!object) return std::unexpected(object.error());
  std::optional<dom::element> requests;
  for (const dom::key_value_pair pair : *object) {
    if (pair.key != "requests") continue;
    if (requests) return invalid("\"requests\" occurs twice: say it once");
    requests = pair.value;
  }
  if (!requests || requests->is_null()) return invalid("\"requests\" is missing: this call needs it");
  if (requests->get(json_->batch)) return invalid("\"requests\" must be an array");
  const size_t count = json_->batch.size();
  if (count > limits_.batch)
    return invalid(fmt::format("\"requests\" has {} entries: at most {} are allowed", count, limits_.batch));
  json_->next = json_->batch.begin();
  json_->left = count;
  return count;
}

BatchItem RequestParser::next_in_batch() {
  TS_CHECK(json_->left > 0, "a batch is asked for no more requests than it has");
  --json_->left;
  dom::object object;
  const auto not_an_object = (*json_->next).get(object);
  ++json_->next;
  if (not_an_object)
    return make_error(ErrorCode::invalid, "a request of a batch must be a JSON object: {...}");

  // The call decides which fields are known, so it has to be found before the others are read.
  Fields& fields = json_->fields;
  if (std::optional<ApiError> error = read_fields(object, FieldSet(Field::call), fields))
    return *std::move(error);
  const std::string_view call = fields.text(Field::call);
  const auto make = [&](FieldSet known, auto make_command) -> BatchItem {
    if (std::optional<ApiError> error = read_fields(object, known, fields)) return *std::move(error);
    auto made = make_command(fields, limits_);
    if (!made) return std::move(made.error());
    if constexpr (std::is_same_v<decltype(made), ApiResult<LockRequest>>)
      return made->command;
    else
      return *made;
  };
  const auto make_change = [&]<class Change>(Change change) -> BatchItem {
    return make(kReferenceFields, [&](Fields& from, const ApiLimits& limits) -> ApiResult<Change> {
      const ApiResult<ReferenceCommand> made = make_reference(from, limits);
      if (!made) return std::unexpected(made.error());
      static_cast<ReferenceCommand&>(change) = *made;
      return change;
    });
  };
  if (call == "lock") return make(kBatchLockFields, make_lock);
  if (call == "unlock") return make(kUnlockFields, make_unlock);
  if (call == "renew") return make(kRenewFields, make_renew);
  if (call == "cancel") return make(kCancelFields, make_cancel);
  if (call == "refs/add") return make_change(AddReferenceCommand());
  if (call == "refs/release") return make_change(ReleaseReferenceCommand());
  return make_error(ErrorCode::invalid,
                    R"("call" must be "lock", "unlock", "renew", "cancel", "refs/add" or "refs/release")");
}

}  // namespace turnstile
