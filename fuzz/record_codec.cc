// The records of the journal. What must hold:
// - any bytes are records or refused, and no text of a record lies outside of them;
// - records that were read and are written again are no longer than they were, and are read as the same
// records;
// - to write them once more gives the same bytes.
#include "journal/record_codec.h"

#include <vector>

#include "support.h"

namespace turnstile::fuzz {
namespace {

// All records at the front of `bytes`, and what is left behind them.
std::vector<Record> read_all(std::string_view& bytes) {
  std::vector<Record> records;
  ReadTexts last;
  Record record;
  while (!bytes.empty() && take_record(bytes, record, last)) records.push_back(record);
  return records;
}

std::string write_all(const std::vector<Record>& records) {
  std::string out;
  WrittenTexts last;
  for (const Record& record : records) append_record(out, record, last);
  return out;
}

bool same(const Record& a, const Record& b) {
  return a.kind == b.kind && a.flags == b.flags && a.attempt == b.attempt && a.lane == b.lane &&
         a.who == b.who && a.number == b.number && a.since == b.since && a.until == b.until &&
         a.lease == b.lease && a.progress == b.progress && a.text == b.text && a.error == b.error &&
         a.result == b.result;
}

void check_inside(const Record& r, std::string_view bytes) {
  for (const std::string_view text : {r.lane.operation.text, r.lane.resource.text, r.who.node.text,
                                      r.who.request.text, r.text, r.error, r.result})
    TS_CHECK(text.empty() ||
                 (text.data() >= bytes.data() && text.data() + text.size() <= bytes.data() + bytes.size()),
             "a text of a record lies inside of the bytes");
}

}  // namespace

void run(std::string_view bytes) {
  const ExactCopy copy(bytes);
  std::string_view left = copy.view();
  const std::vector<Record> records = read_all(left);
  for (const Record& record : records) check_inside(record, copy.view());

  const std::string written = write_all(records);
  TS_CHECK(written.size() <= bytes.size() - left.size(),
           "records are written in no more bytes than they were read from");
  std::string_view none = written;
  const std::vector<Record> again = read_all(none);
  TS_CHECK(none.empty() && again.size() == records.size(), "what was written is read back");
  TS_CHECK(std::ranges::equal(records, again, same), "records are read as they were written");
  TS_CHECK(write_all(again) == written, "the same records are the same bytes");
}

}  // namespace turnstile::fuzz
