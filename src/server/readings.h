// What GET /metrics tells of the moment: values that the service, the HTTP server and the system keep, and
// that are only read when somebody asks. What is counted as it happens is in service/metrics.h.
#pragma once

#include <string>

#include "http/statistics.h"
#include "server/settings.h"
#include "service/service.h"

namespace turnstile {

// `service`: the current life of the state, or nullptr between two lives.
void append_readings(std::string& out, const Settings& settings, const http::Statistics& http, size_t streams,
                     Service* service);

}  // namespace turnstile
