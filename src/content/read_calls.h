// The Read call, which decides how fast containerd unpacks: 32 KiB at a time, one call each.
//
// It is served apart from the others, from a completion queue of its own: no thread changes between the
// arrival of a call and its answer, and the bytes go from the file into the message without another copy.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <thread>
#include <vector>

#include "content/service.h"

namespace turnstile::content {

// Threads: some of its own, which serve one call each at a time, as far as it can go without waiting for the
// client. Between start() and stop() the server must live; the queue must be taken from its builder.
class ReadCalls {
 public:
  ReadCalls(ContentService& service, ContentStore& store, std::unique_ptr<grpc::ServerCompletionQueue> queue)
      : service_(service), store_(store), queue_(std::move(queue)) {}
  ~ReadCalls() { stop(); }

  void start();
  // After the server's Shutdown, which ends every call; waits until they have noticed.
  void stop();

 private:
  class Call;
  void serve();

  ContentService& service_;
  ContentStore& store_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::atomic<int> calls_{0};  // under way or waited for; each deletes itself
  std::vector<std::thread> threads_;
};

}  // namespace turnstile::content
