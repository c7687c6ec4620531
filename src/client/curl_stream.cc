#include "client/curl_stream.h"

#include <algorithm>
#include <string>

namespace turnstile::client {
namespace {

constexpr size_t kMaxRefusal = 64 << 10;
constexpr long kConnectMs = 5'000;

void add(HeaderList& list, const std::string& line) {
  list.reset(curl_slist_append(list.release(), line.c_str()));
}

}  // namespace

CurlStream::CurlStream(const ServerUrl& url, const ClientSettings& settings, const std::string& credential)
    : base_(url.base), multi_(make_multi()), easy_(make_easy(url, settings)) {
  if (!credential.empty()) add(headers_, "Authorization: Bearer " + credential);
  curl_easy_setopt(easy_.get(), CURLOPT_ERRORBUFFER, detail_.data());
}

size_t CurlStream::on_bytes(char* data, size_t size, size_t count, void* self) {
  auto& stream = *static_cast<CurlStream*>(self);
  const std::string_view bytes(data, size * count);
  stream.last_byte_ = Steady::now();
  stream.any_byte_ = true;
  long status = 0;
  curl_easy_getinfo(stream.easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) {
    stream.enough_ = !(*stream.bytes_)(bytes);
    stream.last_byte_ = Steady::now();  // what the callback took was not the server's silence
    return stream.enough_ ? CURL_WRITEFUNC_ERROR : bytes.size();
  }
  stream.body_ += bytes.substr(0, kMaxRefusal - std::min(kMaxRefusal, stream.body_.size()));
  return bytes.size();
}

std::expected<Answer, TransportError> CurlStream::run(const Exchange& exchange,
                                                      const Transport::Bytes& bytes) {
  CURL* const easy = easy_.get();
  bytes_ = &bytes;
  last_byte_ = Steady::now();
  add(headers_, "Accept: text/event-stream");
  if (!exchange.last_event_id.empty()) add(headers_, "Last-Event-ID: " + std::string(exchange.last_event_id));
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy, CURLOPT_URL, (base_ + std::string(exchange.target)).c_str());
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, long(exchange.timeout.count()));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &CurlStream::on_bytes);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  const CURLcode code = perform(exchange);
  if (code != CURLE_OK && !enough_) return std::unexpected(error_of(code, true, detail_.data()));
  Answer answer;
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  answer.status = int(status);
  answer.body = std::move(body_);
  return answer;
}

Milliseconds CurlStream::until_too_silent(const Exchange& exchange) const {
  const bool first = !any_byte_ && exchange.first_byte.count() > 0;
  const Milliseconds limit = first ? exchange.first_byte : exchange.silence;
  if (limit.count() == 0) return Milliseconds(60'000);
  return std::chrono::ceil<Milliseconds>(last_byte_ + limit - Steady::now());
}

CURLcode CurlStream::perform(const Exchange& exchange) {
  CURLM* const multi = multi_.get();
  curl_multi_add_handle(multi, easy_.get());
  CURLcode code = CURLE_ABORTED_BY_CALLBACK;
  {
    const std::stop_callback wake(exchange.stop, [multi] { curl_multi_wakeup(multi); });
    while (!exchange.stop.stop_requested()) {
      int running = 0, left = 0;
      if (curl_multi_perform(multi, &running) != CURLM_OK) break;
      if (running == 0) {
        if (const CURLMsg* message = curl_multi_info_read(multi, &left)) code = message->data.result;
        break;
      }
      const Milliseconds quiet = until_too_silent(exchange);
      if (quiet.count() <= 0) {
        code = CURLE_OPERATION_TIMEDOUT;
        break;
      }
      curl_multi_poll(multi, nullptr, 0, int(std::min<int64_t>(quiet.count(), 60'000)), nullptr);
    }
  }
  // Removing a handle in the middle of a transfer closes its connection: that is what a stop means.
  curl_multi_remove_handle(multi, easy_.get());
  return code;
}

}  // namespace turnstile::client
