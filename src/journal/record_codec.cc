#include "journal/record_codec.h"

#include "journal/wire.h"

namespace turnstile {
namespace {

// The bits of `fields`. Their order is the order of the fields; a new one goes to the end.
enum Field : uint16_t {
  kFlags = 1 << 0,
  kAttempt = 1 << 1,
  kOperation = 1 << 2,
  kResource = 1 << 3,
  kNode = 1 << 4,
  kRequest = 1 << 5,
  kNumber = 1 << 6,
  kSince = 1 << 7,
  kUntil = 1 << 8,
  kLease = 1 << 9,
  kProgress = 1 << 10,
  kText = 1 << 11,
  kError = 1 << 12,
  kSameError = 1 << 13,  // no bytes: the error of the last record that has one
  kResult = 1 << 14,     // an empty one: the result of the last record that has one
  kAllFields = (1 << 15) - 1,
};

constexpr uint8_t kLastKind = uint8_t(kLastRecordKind);

// Names all members, so that a new one does not compile until it has a bit.
uint16_t fields_of(const Record& record) {
  const auto& [kind, flags, attempt, lane, who, number, since, until, lease, progress, text, error, result] =
      record;
  unsigned fields = 0;
  if (flags != 0) fields |= kFlags;
  if (attempt != 0) fields |= kAttempt;
  if (!lane.operation.empty()) fields |= kOperation;
  if (!lane.resource.empty()) fields |= kResource;
  if (!who.node.empty()) fields |= kNode;
  if (!who.request.empty()) fields |= kRequest;
  if (number != 0) fields |= kNumber;
  if (since != Time{}) fields |= kSince;
  if (until != Time{}) fields |= kUntil;
  if (lease != Duration{}) fields |= kLease;
  if (progress != Progress{}) fields |= kProgress;
  if (!text.empty()) fields |= kText;
  if (!error.empty()) fields |= kError;
  if (!result.empty()) fields |= kResult;
  return uint16_t(fields);
}

size_t most_bytes(const Record& r) {
  constexpr size_t kNumbers = 1 + 2 + 1 + 2 * sizeof(int64_t) + 5 * wire::kMostVarintBytes;
  constexpr size_t kLengths = 7 * wire::kMostVarintBytes;
  return kNumbers + kLengths + r.lane.operation.text.size() + r.lane.resource.text.size() +
         r.who.node.text.size() + r.who.request.text.size() + r.text.size() + r.error.size() +
         r.result.size();
}

char* put_record(char* to, const Record& r, uint16_t fields, std::string_view result) {
  *to++ = char(r.kind);
  to = wire::put_fixed(to, fields);
  if (fields & kFlags) *to++ = char(r.flags);
  if (fields & kAttempt) to = wire::put_varint(to, r.attempt);
  if (fields & kOperation) to = wire::put_string(to, r.lane.operation.text);
  if (fields & kResource) to = wire::put_string(to, r.lane.resource.text);
  if (fields & kNode) to = wire::put_string(to, r.who.node.text);
  if (fields & kRequest) to = wire::put_string(to, r.who.request.text);
  if (fields & kNumber) to = wire::put_varint(to, r.number);
  if (fields & kSince) to = wire::put_fixed<int64_t>(to, r.since.time_since_epoch().count());
  if (fields & kUntil) to = wire::put_fixed<int64_t>(to, r.until.time_since_epoch().count());
  if (fields & kLease) to = wire::put_varint(to, wire::zigzag(r.lease.count()));
  if (fields & kProgress) to = wire::put_varint(wire::put_varint(to, r.progress.done), r.progress.total);
  if (fields & kText) to = wire::put_string(to, r.text);
  if (fields & kError) to = wire::put_string(to, r.error);
  if (fields & kResult) to = wire::put_string(to, result);
  return to;
}

bool take_time(wire::Reader& from, Time& time) {
  int64_t count;
  if (!from.take_fixed(count)) return false;
  time = Time(Duration(count));
  return true;
}

bool take_attempt(wire::Reader& from, uint32_t& attempt) {
  uint64_t value;
  if (!from.take_varint(value) || value > UINT32_MAX) return false;
  attempt = uint32_t(value);
  return true;
}

bool take_lease(wire::Reader& from, Duration& lease) {
  uint64_t value;
  if (!from.take_varint(value)) return false;
  lease = Duration(wire::unzigzag(value));
  return true;
}

}  // namespace

void append_record(std::string& out, const Record& record, WrittenTexts& last) {
  const size_t before = out.size();
  const auto is_last = [&](const WrittenTexts::Place& place, std::string_view text) {
    return !text.empty() && std::string_view(out).substr(place.at, place.size) == text;
  };
  uint16_t fields = fields_of(record);
  if (is_last(last.error, record.error)) fields ^= kError | kSameError;
  const std::string_view result = is_last(last.result, record.result) ? std::string_view() : record.result;
  out.resize_and_overwrite(before + most_bytes(record), [&](char* bytes, size_t) {
    return size_t(put_record(bytes + before, record, fields, result) - bytes);
  });
  // They are the last two fields.
  const size_t at = out.size() - result.size();
  if (!result.empty()) last.result = {at, result.size()};
  if (!(fields & kError)) return;
  const size_t length = fields & kResult ? wire::varint_bytes(result.size()) : 0;
  last.error = {at - length - record.error.size(), record.error.size()};
}

bool take_record(std::string_view& bytes, Record& r, ReadTexts& last) {
  wire::Reader from(bytes);
  uint8_t kind;
  uint16_t fields;
  if (!from.take_fixed(kind) || kind == 0 || kind > kLastKind) return false;
  if (!from.take_fixed(fields) || (fields & ~kAllFields) != 0) return false;
  r = Record{};
  r.kind = RecordKind(kind);
  if ((fields & kFlags) && !from.take_fixed(r.flags)) return false;
  if ((fields & kAttempt) && !take_attempt(from, r.attempt)) return false;
  if ((fields & kOperation) && !from.take_string(r.lane.operation.text)) return false;
  if ((fields & kResource) && !from.take_string(r.lane.resource.text)) return false;
  if ((fields & kNode) && !from.take_string(r.who.node.text)) return false;
  if ((fields & kRequest) && !from.take_string(r.who.request.text)) return false;
  if ((fields & kNumber) && !from.take_varint(r.number)) return false;
  if ((fields & kSince) && !take_time(from, r.since)) return false;
  if ((fields & kUntil) && !take_time(from, r.until)) return false;
  if ((fields & kLease) && !take_lease(from, r.lease)) return false;
  if ((fields & kProgress) && !(from.take_varint(r.progress.done) && from.take_varint(r.progress.total)))
    return false;
  if ((fields & kText) && !from.take_string(r.text)) return false;
  if ((fields & kError) && !from.take_string(r.error)) return false;
  if (fields & kSameError) {
    if ((fields & kError) || last.error.empty()) return false;
    r.error = last.error;
  }
  if (fields & kResult) {
    if (!from.take_string(r.result)) return false;
    if (r.result.empty()) r.result = last.result;
    if (r.result.empty()) return false;
    last.result = r.result;
  }
  if (!r.error.empty()) last.error = r.error;
  bytes = from.rest();
  return true;
}

}  // namespace turnstile
