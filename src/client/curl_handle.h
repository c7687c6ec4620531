// libcurl's handles with owners, and the options that every handle of ours has.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string_view>

#include "client/server_url.h"
#include "client/transport.h"
#include "turnstile/settings.h"

namespace turnstile::client {

struct EasyDelete {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDelete {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDelete {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDelete>;
using Multi = std::unique_ptr<CURLM, MultiDelete>;
using HeaderList = std::unique_ptr<curl_slist, ListDelete>;

// For `url`, with the settings' certificates; no signals, redirects or proxies.
Easy make_easy(const ServerUrl& url, const ClientSettings& settings);
Multi make_multi();

// `detail`: what libcurl has written into the handle's error buffer; of TLS it says more than the code does.
TransportError error_of(CURLcode code, bool maybe_sent, std::string_view detail = {});

}  // namespace turnstile::client
