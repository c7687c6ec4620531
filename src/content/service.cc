// See service.h.
#include "content/service.h"

#include <containerd_content.pb.h>

#include <utility>

#include "base/log.h"
#include "content/read_method.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

namespace wire = ::containerd::services::content::v1;

constexpr size_t kInfosInMessage = 100;

rpc::Code code_of(ErrorClass error) {
  switch (error) {
    case ErrorClass::invalid_argument:
      return rpc::Code::invalid_argument;
    case ErrorClass::not_found:
      return rpc::Code::not_found;
    case ErrorClass::already_exists:
      return rpc::Code::already_exists;
    case ErrorClass::failed_precondition:
      return rpc::Code::failed_precondition;
    case ErrorClass::out_of_range:
      return rpc::Code::out_of_range;
    case ErrorClass::unavailable:
      return rpc::Code::unavailable;
    case ErrorClass::resource_exhausted:
      return rpc::Code::resource_exhausted;
    case ErrorClass::internal:
      break;
  }
  return rpc::Code::internal;
}

void set_time(const Timestamp& time, google::protobuf::Timestamp* out) {
  const timespec parts = time.to_timespec();
  out->set_seconds(parts.tv_sec);
  out->set_nanos(int32_t(parts.tv_nsec));
}

void set_info(const BlobInfo& info, wire::Info* out) {
  out->set_digest(info.digest.text());
  out->set_size(info.size);
  set_time(info.created, out->mutable_created_at());
  set_time(info.updated, out->mutable_updated_at());
  for (const auto& [key, value] : info.labels) (*out->mutable_labels())[key] = value;
}

void set_status(const IngestStatus& status, wire::Status* out) {
  set_time(status.started, out->mutable_started_at());
  set_time(status.updated, out->mutable_updated_at());
  out->set_ref(status.ref);
  out->set_offset(status.offset);
  out->set_total(status.total);
  out->set_expected(status.expected);
}

template <class Map>
Labels labels_from(const Map& map) {
  return {map.begin(), map.end()};
}

rpc::Status bad_message() { return {rpc::Code::internal, "the request is no message of this method's"}; }

rpc::Message encoded(const google::protobuf::MessageLite& message) {
  return {.head = message.SerializeAsString(), .data = nullptr};
}

template <class Request, class Response>
using Answer = Outcome<void> (*)(ContentStore&, const Request&, Response&);

template <class Request, class Response>
rpc::Status answer_one(ContentStore& store, Answer<Request, Response> answer, const std::string& bytes,
                       rpc::Call& call) {
  Request request;
  if (!request.ParseFromString(bytes)) return bad_message();
  Response response;
  if (const Outcome<void> done = answer(store, request, response); !done) return to_status(done.error());
  call.write(encoded(response));
  return {};
}

// A method of one message in, one out.
template <class Request, class Response>
rpc::Method unary(ContentStore& store, Outcome<void> (*answer)(ContentStore&, const Request&, Response&)) {
  return {.run = [&store, answer](rpc::Call& call) {
    std::string bytes;
    return call.read(bytes) ? answer_one(store, answer, bytes, call) : bad_message();
  }};
}

// One that never waits.
template <class Request, class Response>
rpc::Method quick(ContentStore& store, Outcome<void> (*answer)(ContentStore&, const Request&, Response&)) {
  rpc::Method method = unary(store, answer);
  method.run_at_once = [&store, answer](const std::string& request, rpc::Call& call) {
    return std::optional(answer_one(store, answer, request, call));
  };
  return method;
}

Outcome<void> info(ContentStore& store, const wire::InfoRequest& request, wire::InfoResponse& response) {
  const Outcome<Digest> digest = Digest::parse(request.digest());
  if (!digest) return std::unexpected(digest.error());
  const Outcome<BlobInfo> found = store.info(*digest);
  if (!found) return std::unexpected(found.error());
  set_info(*found, response.mutable_info());
  return {};
}

Outcome<void> update(ContentStore& store, const wire::UpdateRequest& request,
                     wire::UpdateResponse& response) {
  const Outcome<Digest> digest = Digest::parse(request.info().digest());
  if (!digest) return std::unexpected(digest.error());
  const auto& paths = request.update_mask().paths();
  const Outcome<BlobInfo> updated =
      store.update(*digest, labels_from(request.info().labels()), {paths.begin(), paths.end()});
  if (!updated) return std::unexpected(updated.error());
  set_info(*updated, response.mutable_info());
  return {};
}

Outcome<void> remove(ContentStore& store, const wire::DeleteContentRequest& request,
                     google::protobuf::Empty&) {
  const Outcome<Digest> digest = Digest::parse(request.digest());
  if (!digest) return std::unexpected(digest.error());
  return store.remove(*digest);
}

Outcome<void> status(ContentStore& store, const wire::StatusRequest& request,
                     wire::StatusResponse& response) {
  const Outcome<IngestStatus> found = store.status(request.ref());
  if (!found) return std::unexpected(found.error());
  set_status(*found, response.mutable_status());
  return {};
}

Outcome<void> list_statuses(ContentStore& store, const wire::ListStatusesRequest& request,
                            wire::ListStatusesResponse& response) {
  const Outcome<Filter> filter = Filter::parse(request.filters());
  if (!filter) return std::unexpected(filter.error());
  const Outcome<std::vector<IngestStatus>> found = store.statuses(*filter);
  if (!found) return std::unexpected(found.error());
  for (const IngestStatus& one : *found) set_status(one, response.add_statuses());
  return {};
}

Outcome<void> abort(ContentStore& store, const wire::AbortRequest& request, google::protobuf::Empty&) {
  return store.abort(request.ref());
}

rpc::Status list(ContentStore& store, rpc::Call& call) {
  std::string bytes;
  wire::ListContentRequest request;
  if (!call.read(bytes) || !request.ParseFromString(bytes)) return bad_message();
  const Outcome<Filter> filter = Filter::parse(request.filters());
  if (!filter) return to_status(filter.error());
  wire::ListContentResponse response;
  for (const BlobInfo& found : store.list(*filter)) {
    set_info(found, response.add_info());
    if (size_t(response.info_size()) < kInfosInMessage) continue;
    if (!call.write(encoded(response))) return {rpc::Code::cancelled, ""};
    response.Clear();
  }
  if (response.info_size() > 0) call.write(encoded(response));
  return {};
}

wire::WriteContentResponse to_wire(wire::WriteAction action, const WriteAnswer& answer) {
  wire::WriteContentResponse response;
  response.set_action(action);
  set_time(answer.started, response.mutable_started_at());
  set_time(answer.updated, response.mutable_updated_at());
  response.set_offset(answer.offset);
  response.set_total(answer.total);
  response.set_digest(answer.digest);
  return response;
}

rpc::Status write(ContentStore& store, std::chrono::milliseconds stalled_after, rpc::Call& call) {
  WriteSession session(store);
  std::string bytes;  // both are kept over the messages, for their memory
  wire::WriteContentRequest request;
  const auto read = [&] {
    if (stalled_after.count() > 0 && !call.wait_to_read(stalled_after)) session.stalled();
    return call.read(bytes);
  };
  while (!session.committed() && read()) {
    if (!request.ParseFromString(bytes)) return bad_message();
    if (request.action() < wire::STAT || request.action() > wire::COMMIT)
      return {rpc::Code::invalid_argument, "unknown action"};
    const Outcome<WriteAnswer> answer = session.handle({.action = WriteAction(request.action()),
                                                        .ref = request.ref(),
                                                        .total = request.total(),
                                                        .expected = request.expected(),
                                                        .offset = request.offset(),
                                                        .data = request.data(),
                                                        .labels = labels_from(request.labels())});
    if (!answer) return to_status(answer.error());
    if (!call.write(encoded(to_wire(request.action(), *answer)))) return {rpc::Code::cancelled, ""};
    session.catch_up(request.data());
  }
  return {};
}

}  // namespace

rpc::Status to_status(const ContentError& error) {
  if (error.code == ErrorClass::internal || error.code == ErrorClass::resource_exhausted)
    log_error("a call failed", {{"error", error.message}});
  return {code_of(error.code), error.message};
}

rpc::Methods content_methods(ContentStore& store, std::chrono::milliseconds stalled_after) {
  const std::string service = "/containerd.services.content.v1.Content/";
  rpc::Methods methods;
  methods[service + "Info"] = quick(store, info);  // what a node has is known in memory
  methods[service + "Read"] = read_method(store);
  methods[service + "Update"] = unary(store, update);
  methods[service + "Delete"] = unary(store, remove);
  methods[service + "Status"] = unary(store, status);
  methods[service + "ListStatuses"] = unary(store, list_statuses);
  methods[service + "Abort"] = unary(store, abort);
  methods[service + "List"] = {.run = [&store](rpc::Call& call) { return list(store, call); }};
  methods[service + "Write"] = {
      .run = [&store, stalled_after](rpc::Call& call) { return write(store, stalled_after, call); }};
  return methods;
}

}  // namespace turnstile::content
