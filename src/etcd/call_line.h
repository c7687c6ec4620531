// A connection of our own to one member of etcd, on which a call costs a third of what it costs through gRPC.
//
// Every step of the log waits for one transaction, and on it hang the speed of a hand-over and that of a
// batch. On two cores gRPC takes 180 us of them for a call, threads that wake each other included, and
// answers each PING of etcd's at once, which wakes etcd once more; this takes 60 and answers it with the next
// call (decision 0025 has the measurement). Everything else is gRPC's, and so is a call that finds no line.
#pragma once

#include <etcd_rpc.pb.h>
#include <grpcpp/support/status.h>
#include <nghttp2/nghttp2.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.h"
#include "etcd/line_socket.h"

namespace turnstile::etcd {

// Not its job: looking names up, connecting again, choosing a member. Threads: one at a time (LineShelf sees
// to it). Invariant: after anything but an answer to the call it is broken, and says so.
class CallLine {
 public:
  // Connects, and greets. Null: there is none in time; gRPC knows why.
  static std::unique_ptr<CallLine> open(std::string_view peer, SSL_CTX* tls, const std::string& authority,
                                        SteadyTime until);
  ~CallLine();

  // Takes what has come meanwhile; the next call carries what must be said to it. False: hung up, or about
  // to.
  bool is_usable();
  // The same while nobody calls: says it now.
  bool tend(SteadyTime until);
  // One call and its answer. UNAVAILABLE and DEADLINE_EXCEEDED: it may have been carried out.
  grpc::Status transact(const etcdserverpb::TxnRequest& request, const std::string& token,
                        SteadyTime deadline, etcdserverpb::TxnResponse& response);

 private:
  struct Callbacks;

  CallLine(std::unique_ptr<LineSocket> socket, const std::string& authority, bool tls);
  bool begin_call(const etcdserverpb::TxnRequest& request, const std::string& token, SteadyTime deadline);
  // Everything that nghttp2 has to say.
  bool send(SteadyTime until);
  bool receive(SteadyTime until);
  grpc::Status outcome(etcdserverpb::TxnResponse& response) const;

  const std::unique_ptr<LineSocket> socket_;
  const std::string authority_, scheme_;
  std::unique_ptr<nghttp2_session, decltype(&nghttp2_session_del)> session_{nullptr, &nghttp2_session_del};
  bool broken_ = false;
  std::string to_send_;
  std::vector<std::array<uint8_t, 8>> pings_;  // not yet answered

  // The call under way.
  int32_t stream_ = 0;
  std::string request_, response_;
  size_t request_sent_ = 0;
  bool ended_ = false;
  std::string http_status_, status_, message_;
};

// Where a member's line lies while nobody uses it. Threads: any.
class LineShelf {
 public:
  // Null: there is none, or somebody has it.
  std::unique_ptr<CallLine> take() TS_EXCLUDES(mutex_);
  // Null: it could not be used any more.
  void give_back(std::unique_ptr<CallLine> line) TS_EXCLUDES(mutex_);
  bool is_empty() TS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::unique_ptr<CallLine> line_ TS_GUARDED_BY(mutex_);
  bool lent_ TS_GUARDED_BY(mutex_) = false;
};

}  // namespace turnstile::etcd
