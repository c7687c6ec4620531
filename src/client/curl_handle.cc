#include "client/curl_handle.h"

#include <new>

namespace turnstile::client {

Easy make_easy(const ServerUrl& url, const ClientSettings& settings) {
  Easy owned(curl_easy_init());
  if (!owned) throw std::bad_alloc();
  CURL* const easy = owned.get();
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
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

TransportError error_of(CURLcode code, bool maybe_sent) {
  TransportError error{.fault = Fault::broken, .maybe_sent = maybe_sent, .message = curl_easy_strerror(code)};
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR:
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
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
      error.fault = Fault::misconfigured;
      error.maybe_sent = false;
      break;
    default:
      break;
  }
  return error;
}

}  // namespace turnstile::client
