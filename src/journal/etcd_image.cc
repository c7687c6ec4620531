#include "journal/etcd_image.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/plant.h"
#include "journal/record_codec.h"

namespace turnstile {
namespace {

using etcd::Answer;
using etcd::KeyValue;
using etcd::RangeAnswer;
using etcd::Revision;

// What does not arrive in time would not the next time either. So a page is about a megabyte, which a slow
// network carries, too: one chunk, or so many keys of the log; and it has this time, however short a lease
// is.
constexpr size_t kLogPage = 8, kKeysPage = 20'000;
constexpr EtcdImage::Timeout kPageWithin = std::chrono::seconds(5);
// Of the log more, where they are small, by those of the page before. Should a page of large ones follow, it
// is one of a hundred megabytes at the most; when that takes too long the next look begins there, with a
// small page.
constexpr size_t kLogPageBytes = 1 << 20, kMostLogPage = 1000;

Result<void> load_records(std::string_view payload, uint32_t records, const Journal::Load& load,
                          const std::string& where) {
  ReadTexts last;
  Record record;
  for (uint32_t i = 0; i < records; ++i) {
    if (!take_record(payload, record, last))
      return fail(
          fmt::format("{} has something that is not a record this program knows, although the checksum "
                      "is right. Use the version of the program that wrote it.",
                      where));
    load(record);
  }
  if (!payload.empty()) return fail(fmt::format("{} has bytes behind its last record", where));
  return {};
}

std::unexpected<Error> damaged(const std::string& key) {
  return fail(
      fmt::format("etcd's key {} is damaged or of another format: nothing was changed. Restore etcd "
                  "from a backup.",
                  key));
}

}  // namespace

Answer<void> EtcdImage::page(const std::string& begin, const std::string& end, Revision at, size_t limit,
                             bool keys_only, Timeout within, const std::function<void(KeyValue&)>& take) {
  std::string from = begin;
  for (;;) {
    etcd::RangeRequest request{from, end, at, limit, keys_only};
    Answer<RangeAnswer> answer = client_.range(request, within);
    if (!answer) return std::unexpected(answer.error());
    for (KeyValue& value : answer->values) take(value);
    if (!answer->more || answer->values.empty()) return {};
    from = answer->values.back().key + '\0';
  }
}

Answer<void> EtcdImage::refresh(Revision at, Look look, Timeout within) {
  const Answer<Revision> seen = read_pointer(at, within);
  if (!seen) return std::unexpected(seen.error());
  // etcd has told what is no longer so, or was set back to a backup.
  if (begun_ && *seen < as_of_) in_doubt_ = true;
  as_of_ = at = *seen;  // everything as of one moment
  if (in_doubt_) return {};
  within = std::max(within, kPageWithin);
  if (Answer<void> done = read_chunks(at, look, within); !done) return done;
  if (look == Look::all)
    if (Answer<void> done = forget_changed_log(at, within); !done) return done;
  return read_log(at, within);
}

Answer<Revision> EtcdImage::read_pointer(Revision at, Timeout within) {
  etcd::RangeRequest request;
  request.begin = keys_.current();
  request.at = at;
  Answer<RangeAnswer> answer = client_.range(request, within);
  if (!answer) return std::unexpected(answer.error());
  take_pointer(answer->values.empty() ? nullptr : &answer->values.front());
  if (pointer_) log_.erase(log_.begin(), log_.lower_bound(pointer_->first_number));
  return at != 0 ? at : answer->revision;
}

// A snapshot of what has been given already need not be read, however large it is.
void EtcdImage::take_pointer(const KeyValue* found) {
  const Revision modified = found == nullptr ? 0 : found->mod_revision;
  if (modified == pointer_modified_) return;
  const uint64_t first_before = pointer_ ? pointer_->first_number : 1;
  pointer_modified_ = modified;
  pointer_.reset();
  pointer_fault_.clear();
  chunks_.clear();
  if (found != nullptr) pointer_ = decode_snapshot_pointer(found->value);
  if (found != nullptr && !pointer_) pointer_fault_ = keys_.current();
  if (!begun_ || planted(Plant::missed_log_unnoticed)) return;
  if (!pointer_ || pointer_->first_number > given_ || pointer_->first_number < first_before) in_doubt_ = true;
}

Answer<void> EtcdImage::read_chunks(Revision at, Look look, Timeout within) {
  if (!pointer_ || begun_) return {};
  const std::string begin = keys_.chunk(pointer_->generation, 0);
  const std::string end = keys_.chunk(pointer_->generation, pointer_->chunks);
  if (look == Look::all && !chunks_.empty()) {
    std::map<std::string, Revision> there;
    auto listed = page(begin, end, at, kKeysPage, true, within,
                       [&](KeyValue& each) { there[each.key] = each.mod_revision; });
    if (!listed) return listed;
    std::erase_if(chunks_, [&](const auto& kept) {
      const auto found = there.find(kept.first);
      return found == there.end() || found->second != kept.second.modified;
    });
  }
  for (uint64_t i = 0; i < pointer_->chunks; ++i) {
    const std::string key = keys_.chunk(pointer_->generation, i);
    if (chunks_.contains(key)) continue;
    etcd::RangeRequest request;
    request.begin = key;
    request.at = at;
    Answer<RangeAnswer> answer = client_.range(request, within);
    if (!answer) return std::unexpected(answer.error());
    for (KeyValue& each : answer->values)
      chunks_[each.key] = {each.create_revision, each.mod_revision, each.value.size(), std::move(each.value)};
  }
  return {};
}

// A later term may have erased the end of an earlier one's log and written something else there.
Answer<void> EtcdImage::forget_changed_log(Revision at, Timeout within) {
  std::map<uint64_t, Revision> there;
  auto listed = page(keys_.log(0), keys_.log_end(), at, kKeysPage, true, within, [&](KeyValue& each) {
    if (const auto number = keys_.number_of(each.key)) there[*number] = each.mod_revision;
  });
  if (!listed) return listed;
  std::erase_if(log_, [&](const auto& kept) {
    const auto found = there.find(kept.first);
    const bool changed = found == there.end() || found->second != kept.second.modified;
    if (changed && kept.first < given_) in_doubt_ = true;
    return changed;
  });
  return {};
}

// From the first number that is missing here.
Answer<void> EtcdImage::read_log(Revision at, Timeout within) {
  const uint64_t from = next_number();
  log_.erase(log_.lower_bound(from), log_.end());
  std::string begin = keys_.log(from);
  for (size_t limit = kLogPage;;) {
    Answer<RangeAnswer> answer = client_.range({begin, keys_.log_end(), at, limit, false}, within);
    if (!answer) return std::unexpected(answer.error());
    size_t bytes = 0;
    for (KeyValue& each : answer->values) {
      bytes += each.value.size();
      if (const auto number = keys_.number_of(each.key))
        log_[*number] = {each.create_revision, each.mod_revision, each.value.size(), std::move(each.value)};
    }
    if (!answer->more || answer->values.empty()) return {};
    begin = answer->values.back().key + '\0';
    limit = std::clamp(kLogPageBytes * answer->values.size() / (bytes + 1), kLogPage, kMostLogPage);
  }
}

uint64_t EtcdImage::next_number() const {
  uint64_t next = begun_ ? given_ : pointer_ ? pointer_->first_number : 1;
  for (auto at = log_.lower_bound(next); at != log_.end() && at->first == next; ++at) ++next;
  return next;
}

Result<EtcdImage::End> EtcdImage::load(const Journal::Load& load) {
  TS_CHECK(!in_doubt_, "what is in doubt is given to nobody");
  if (!pointer_fault_.empty()) return damaged(pointer_fault_);
  if (!begun_)
    if (Result<void> done = load_snapshot(load); !done) return std::unexpected(done.error());
  if (Result<void> done = load_log(load); !done) return std::unexpected(done.error());
  return end();
}

EtcdImage::End EtcdImage::end() const {
  End end;
  end.report = report_;
  end.next_number = given_;
  if (pointer_)
    end.snapshot_bytes = pointer_->bytes, end.generation = pointer_->generation,
    end.snapshot_time = pointer_->time;
  const auto more = log_.lower_bound(given_);
  for (auto at = log_.begin(); at != more; ++at) end.log_bytes += at->second.bytes;
  end.log_keys = uint64_t(std::distance(log_.begin(), more));
  if (more == log_.end()) return end;
  if (planted(Plant::gap_kept))
    end.next_number = log_.rbegin()->first + 1;
  else
    end.more = {keys_.log(more->first), more->second.created};
  return end;
}

Result<void> EtcdImage::load_snapshot(const Journal::Load& load) {
  begun_ = true;
  if (!pointer_) return {};
  given_ = pointer_->first_number;
  report_.latest = pointer_->time;
  for (uint64_t i = 0; i < pointer_->chunks; ++i) {
    const std::string key = keys_.chunk(pointer_->generation, i);
    const auto found = chunks_.find(key);
    if (found == chunks_.end())
      return fail(fmt::format("etcd's key {} is missing: the snapshot has no end", key));
    const auto chunk = decode_snapshot_chunk(found->second.value);
    if (!chunk || chunk->index != i) return damaged(key);
    if (Result<void> done = load_records(chunk->payload, chunk->records, load, key); !done) return done;
    report_.snapshot_records += chunk->records;
    chunks_.erase(found);
  }
  if (report_.snapshot_records != pointer_->records)
    return fail(fmt::format("the snapshot in etcd has {} records and should have {}",
                            report_.snapshot_records, pointer_->records));
  report_.records = report_.snapshot_records;
  return {};
}

Result<std::optional<std::vector<LogPart>>> EtcdImage::whole_batch(Log::const_iterator from) const {
  std::vector<LogPart> parts;
  const uint64_t first = from->first;
  for (auto at = from; at != log_.end() && at->first == first + parts.size(); ++at) {
    const auto part = decode_log_part(at->second.value);
    if (!part || part->number != at->first) return damaged(keys_.log(at->first));
    if (parts.empty() && part->part != 0) return damaged(keys_.log(at->first));
    // Another batch's: the one before it was never finished.
    if (!parts.empty() && (part->part != parts.size() || part->term != parts.front().term)) break;
    parts.push_back(*part);
    if (parts.size() == part->parts) return parts;
  }
  return std::nullopt;
}

Result<void> EtcdImage::load_log(const Journal::Load& load) {
  // Up to a gap: nobody was answered for what is behind it.
  for (auto at = log_.find(given_); at != log_.end() && at->first == given_;) {
    const auto batch = whole_batch(at);
    if (!batch) return std::unexpected(batch.error());
    if (!*batch) break;
    const LogPart& first = (*batch)->front();
    if (first.term < given_term_) return damaged(keys_.log(first.number));
    given_term_ = first.term;
    std::string together;
    std::string_view payload = first.payload;
    if (first.parts > 1) {
      for (const LogPart& part : **batch) together += part.payload;
      payload = together;
    }
    if (Result<void> done = load_records(payload, first.records, load, keys_.log(first.number)); !done)
      return done;
    report_.records += first.records;
    report_.latest = std::max(report_.latest, first.time);
    ++report_.batches;
    given_ += first.parts;
    for (; at != log_.end() && at->first < given_; ++at) std::string().swap(at->second.value);
  }
  return {};
}

}  // namespace turnstile
