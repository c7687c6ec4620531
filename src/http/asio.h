// The parts of Asio that this folder uses, with the loop's own executor type: the type-erased default
// executor costs an indirect call and 40 bytes for each socket.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>

namespace turnstile::http {

namespace asio = boost::asio;
using boost::system::error_code;

using Io = asio::io_context;
// TCP and Unix sockets alike.
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, Io::executor_type>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Io::executor_type>;

}  // namespace turnstile::http
