#include "client/curl_handle.h"

#include <sys/socket.h>

#include <new>
#include <string>

namespace turnstile::client {
namespace {

// A connection that is closed, or whose process is killed, takes back what has not been sent. Else the kernel
// would go on trying, for minutes behind a network that is cut, and the server would do late what nobody
// waits for any more: the end of a use of a blob, when the next one has begun.
int take_back_when_closed(void*, curl_socket_t socket, curlsocktype) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return CURL_SOCKOPT_OK;
}

}  // namespace

Easy make_easy(const ServerUrl& url, const ClientSettings& settings) {
  Easy owned(curl_easy_init());
  if (!owned) throw std::bad_alloc();
  CURL* const easy = owned.get();
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // a try that is over does not wait for a name to be found
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &take_back_when_closed);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  if (!url.socket_path.empty()) curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, url.socket_path.c_str());
  if (url.tls) {
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, long(CURL_SSLVERSION_TLSv1_2));
    if (!settings.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, settings.ca_file.c_str());
    if (!settings.certificate_file.empty()) {
      curl_easy_setopt(easy, CURLOPT_SSLCERT, settings.certificate_file.c_str());
      curl_easy_setopt(easy, CURLOPT_SSLKEY, settings.key_file.c_str());
    }
  }
  return owned;
}

Multi make_multi() {
  Multi multi(curl_multi_init());
  if (!multi) throw std::bad_alloc();
  return multi;
}

TransportError error_of(CURLcode code, bool maybe_sent, std::string_view detail) {
  TransportError error{.fault = Fault::broken, .maybe_sent = maybe_sent, .message = curl_easy_strerror(code)};
  const std::string more = detail.empty() ? error.message : std::string(detail);
  switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
      error.message = more.find("wrong version number") == more.npos
                          ? "TLS: " + more
                          : "that port speaks plain HTTP and not TLS; use http:// for it";
      [[fallthrough]];
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
      error.fault = Fault::unreachable;
      error.maybe_sent = false;
      break;
    case CURLE_OPERATION_TIMEDOUT:
      error.fault = Fault::timed_out;
      break;
    case CURLE_ABORTED_BY_CALLBACK:
      error.fault = Fault::stopped;
      error.message = "stopped by the caller";
      break;
    case CURLE_PEER_FAILED_VERIFICATION:
      error.fault = Fault::untrusted;
      error.maybe_sent = false;
      error.message =
          more +
          "; name the CA that signs its certificate (--ca FILE, TURNSTILE_CA), and use a host name that "
          "the certificate has";
      break;
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
      error.message = more;
      [[fallthrough]];
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      error.fault = Fault::misconfigured;
      error.maybe_sent = false;
      break;
    default:
      // A certificate of ours that the server refuses is told as late as this.
      if (detail.find("alert") != std::string_view::npos) error.message = "TLS: " + more;
      break;
  }
  return error;
}

}  // namespace turnstile::client
