#include "server/access_state.h"

#include "base/metrics_text.h"

namespace turnstile {

void AccessState::append_metrics(std::string& out) const {
  MetricsText text(out);
  text.counter("turnstile_logins_total", "Credentials that were accepted, once for each connection");
  text.value(double(logins.load()));
  text.counter("turnstile_access_refused_total",
               "Requests, and items of batches, that were refused for who asked, or from where");
  text.value("code", "unauthorized", double(unauthorized.load()));
  text.value("code", "forbidden", double(forbidden.load()));
  text.value("code", "foreign_origin", double(foreign_origin.load()));
  text.counter("turnstile_audit_dropped_total", "Lines of the audit log that could not be written");
  text.value(double(audit ? audit->dropped() : 0));
}

}  // namespace turnstile
