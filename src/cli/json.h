// What --output json prints: the names of the HTTP API, so that one who knows it need not learn others.
#pragma once

#include <boost/json.hpp>

#include "turnstile/lock_client.h"

namespace turnstile::cli {

boost::json::object to_json(const LaneStatus& lane);
boost::json::object to_json(const ReferenceStatus& references);
boost::json::object to_json(const Released& released);
boost::json::object to_json(const Event& event);
boost::json::object to_json(const SkippedWork& work);
boost::json::object to_json(const WaitingStatus& waiting);
boost::json::array to_json(const std::vector<std::string>& texts);

// The value as bytes. What came from a command line or a file and is no UTF-8 is U+FFFD in it: JSON has no
// other way.
std::string json_text(const boost::json::value& value);

// One line on stdout, flushed, for whoever reads the other end of a pipe.
void print_json(const boost::json::value& value);

}  // namespace turnstile::cli
