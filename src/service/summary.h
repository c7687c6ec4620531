// GET /summary: what a person wants to see of a server at a glance (S58).
//
// Made of numbers that are kept as they change: nothing here looks at resources one by one, so that it costs
// the same with one of them and with a million.
#pragma once

#include <string>

#include "service/service.h"

namespace turnstile {

// Appends the answer. Of the endings only those that lie `within`. It may leave behind
// service.gate().latest(), as any read.
void append_summary(std::string& out, Service& service, Metrics& metrics, Prefixes within = {});

}  // namespace turnstile
