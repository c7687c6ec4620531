#include "server/forwarder.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <system_error>
#include <utility>

#include "api/error.h"

namespace turnstile {
namespace {

constexpr size_t kMostAnswer = 64 << 20;

size_t take_body(char* bytes, size_t one, size_t count, void* to) {
  auto& forwarding = *static_cast<Forwarding*>(to);
  if (forwarding.answer.size() + one * count > kMostAnswer) return 0;
  forwarding.answer.append(bytes, one * count);
  return one * count;
}

size_t take_header(char* bytes, size_t one, size_t count, void* to) {
  const std::string_view line(bytes, one * count);
  auto& forwarding = *static_cast<Forwarding*>(to);
  for (const char* name : {"Retry-After:", "WWW-Authenticate:", "Allow:"})
    if (line.starts_with(name)) forwarding.headers += line;
  return one * count;
}

// Whether there is still somebody who wants the answer, and somebody who can give it.
class Lookout {
 public:
  using Clock = std::chrono::steady_clock;
  Lookout(const Forwarding& forwarding, const std::function<KnownLeader()>& leader, int64_t term,
          Duration lease)
      : forwarding_(forwarding), leader_(leader), term_(term), lease_(lease) {}

  bool gives_up() {
    if (forwarding_.abandoned.load()) return true;
    if (!forwarding_.hurried.load()) hurry_until_ = Clock::now() + std::chrono::seconds(1);
    if (Clock::now() >= hurry_until_) return true;
    const KnownLeader now = leader_();
    if (now.term != term_) return true;  // whoever was asked leads no longer, also if it has the same address
    if (!now.url.empty()) led_ = Clock::now();
    return Clock::now() - led_ > lease_;
  }

 private:
  const Forwarding& forwarding_;
  const std::function<KnownLeader()>& leader_;
  const int64_t term_;
  const Duration lease_;
  Clock::time_point led_ = Clock::now();  // when somebody did last
  Clock::time_point hurry_until_ = Clock::time_point::max();
};

// curl calls it about once a second, also when nothing comes.
int look(void* out, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Lookout*>(out)->gives_up() ? 1 : 0;
}

// What the leader's kernel has not confirmed soon is taken back, also when this server gives a call up. Else
// ours would go on trying behind a network that is cut, and the leader would do late what nobody waits for
// any more.
int take_back_when_late(void*, curl_socket_t socket, curlsocktype) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  const unsigned unconfirmed_ms = 1500;
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unconfirmed_ms, sizeof unconfirmed_ms);
  return CURL_SOCKOPT_OK;
}

// curl sends a request again, on a new connection, when the one that it had kept breaks without a word. But
// then it may have been carried out: it is sent once.
int send_once(void* sent, char*, char*, int, int) {
  return std::exchange(*static_cast<bool*>(sent), true) ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

void fail_with(Forwarding& forwarding, ErrorCode code) {
  const ApiError error = make_error(code);
  forwarding.status = error.status;
  forwarding.content_type = "application/json";
  forwarding.headers = std::string(error.headers);
  forwarding.answer.clear();
  append_error_json(forwarding.answer, error);
}

}  // namespace

void Forwarder::pass_on(void* curl, Forwarding& forwarding) {
  const KnownLeader leader = leader_();
  if (leader.url.empty()) return fail_with(forwarding, ErrorCode::no_leader);
  curl_easy_reset(curl);
  const std::string url = leader.url + forwarding.target;
  Lookout lookout(forwarding, leader_, leader.term, lease_);
  curl_slist* headers = curl_slist_append(nullptr, "Expect:");
  headers = curl_slist_append(headers, "Content-Type: application/json");
  if (!forwarding.authorization.empty())
    headers = curl_slist_append(headers, ("Authorization: " + forwarding.authorization).c_str());
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 2000L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &forwarding);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &forwarding);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &lookout);
  curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, take_back_when_late);
  bool sent = false;
  curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, send_once);
  curl_easy_setopt(curl, CURLOPT_PREREQDATA, &sent);
  // A machine that has gone says nothing, and who waits for a lock sends nothing.
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 10L);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 3L);
  if (!ca_.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_.c_str());
  if (forwarding.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, forwarding.body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(forwarding.body.size()));
  } else if (forwarding.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  }
  const CURLcode done = curl_easy_perform(curl);
  curl_slist_free_all(headers);
  if (done != CURLE_OK && !sent) return fail_with(forwarding, ErrorCode::no_leader);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  // A leader that has just lost its office names the next one: the caller asks again, here.
  if (done != CURLE_OK || status == 0) return fail_with(forwarding, ErrorCode::outcome_unknown);
  if (status == 307) return fail_with(forwarding, ErrorCode::no_leader);
  const char* type = nullptr;
  curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
  forwarding.content_type = type != nullptr ? type : "application/json";
  forwarding.status = unsigned(status);
}

Forwarder::Forwarder(std::function<KnownLeader()> leader, Duration lease, std::string ca)
    : leader_(std::move(leader)), lease_(lease), ca_(std::move(ca)) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
}

// Nobody takes anything any more.
Forwarder::~Forwarder() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

// False: the machine, or the service manager (TasksMax), gives no more.
bool Forwarder::add_thread() {
  try {
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

bool Forwarder::take(std::shared_ptr<Forwarding> forwarding) {
  {
    const Locked lock(mutex_);
    const size_t under_way = busy_ + waiting_.size();
    if (under_way >= kThreads || (forwarding->waits && long_polls_ >= kMostWaiting)) return false;
    if (under_way >= threads_.size() && !add_thread()) return false;
    long_polls_ += forwarding->waits;
    waiting_.push_back(std::move(forwarding));
  }
  changed_.notify_one();
  return true;
}

std::shared_ptr<Forwarding> Forwarder::next(const std::stop_token& stop) TS_NO_ANALYSIS {
  std::unique_lock lock(mutex_.native());
  changed_.wait(lock, stop, [&]() TS_NO_ANALYSIS { return !waiting_.empty(); });
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<Forwarding> forwarding = std::move(waiting_.front());
  waiting_.pop_front();
  ++busy_;
  return forwarding;
}

void Forwarder::run(const std::stop_token& stop) {
  CURL* const curl = curl_easy_init();
  while (const std::shared_ptr<Forwarding> forwarding = next(stop)) {
    const std::stop_callback leave(stop, [&] { forwarding->abandon(); });
    pass_on(curl, *forwarding);
    {
      const Locked lock(mutex_);
      --busy_;
      long_polls_ -= forwarding->waits;
    }
    forwarding->on_done();
  }
  curl_easy_cleanup(curl);
}

}  // namespace turnstile
