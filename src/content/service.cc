// See service.h.
#include "content/service.h"

#include "base/log.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

constexpr size_t kInfosInMessage = 100;

grpc::StatusCode code_of(ErrorClass error) {
  switch (error) {
    case ErrorClass::invalid_argument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorClass::not_found:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorClass::already_exists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case ErrorClass::failed_precondition:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorClass::out_of_range:
      return grpc::StatusCode::OUT_OF_RANGE;
    case ErrorClass::unavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case ErrorClass::resource_exhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorClass::internal:
      break;
  }
  return grpc::StatusCode::INTERNAL;
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

}  // namespace

grpc::Status to_status(const ContentError& error) {
  if (error.code == ErrorClass::internal || error.code == ErrorClass::resource_exhausted)
    log_error("a call failed", {{"error", error.message}});
  return {code_of(error.code), error.message};
}

grpc::Status ContentService::Info(grpc::ServerContext*, const wire::InfoRequest* request,
                                  wire::InfoResponse* response) {
  const Outcome<Digest> digest = Digest::parse(request->digest());
  if (!digest) return to_status(digest.error());
  const Outcome<BlobInfo> info = store_.info(*digest);
  if (!info) return to_status(info.error());
  set_info(*info, response->mutable_info());
  return grpc::Status::OK;
}

grpc::Status ContentService::Update(grpc::ServerContext*, const wire::UpdateRequest* request,
                                    wire::UpdateResponse* response) {
  const Outcome<Digest> digest = Digest::parse(request->info().digest());
  if (!digest) return to_status(digest.error());
  const auto& paths = request->update_mask().paths();
  const Outcome<BlobInfo> info =
      store_.update(*digest, labels_from(request->info().labels()), {paths.begin(), paths.end()});
  if (!info) return to_status(info.error());
  set_info(*info, response->mutable_info());
  return grpc::Status::OK;
}

grpc::Status ContentService::List(grpc::ServerContext*, const wire::ListContentRequest* request,
                                  grpc::ServerWriter<wire::ListContentResponse>* writer) {
  const Outcome<Filter> filter = Filter::parse(request->filters());
  if (!filter) return to_status(filter.error());
  wire::ListContentResponse response;
  for (const BlobInfo& info : store_.list(*filter)) {
    set_info(info, response.add_info());
    if (size_t(response.info_size()) < kInfosInMessage) continue;
    if (!writer->Write(response)) return grpc::Status::CANCELLED;
    response.Clear();
  }
  if (response.info_size() > 0) writer->Write(response);
  return grpc::Status::OK;
}

grpc::Status ContentService::Delete(grpc::ServerContext*, const wire::DeleteContentRequest* request,
                                    google::protobuf::Empty*) {
  const Outcome<Digest> digest = Digest::parse(request->digest());
  if (!digest) return to_status(digest.error());
  const Outcome<void> removed = store_.remove(*digest);
  return removed ? grpc::Status::OK : to_status(removed.error());
}

grpc::Status ContentService::Status(grpc::ServerContext*, const wire::StatusRequest* request,
                                    wire::StatusResponse* response) {
  const Outcome<IngestStatus> status = store_.status(request->ref());
  if (!status) return to_status(status.error());
  set_status(*status, response->mutable_status());
  return grpc::Status::OK;
}

grpc::Status ContentService::ListStatuses(grpc::ServerContext*, const wire::ListStatusesRequest* request,
                                          wire::ListStatusesResponse* response) {
  const Outcome<Filter> filter = Filter::parse(request->filters());
  if (!filter) return to_status(filter.error());
  const Outcome<std::vector<IngestStatus>> statuses = store_.statuses(*filter);
  if (!statuses) return to_status(statuses.error());
  for (const IngestStatus& status : *statuses) set_status(status, response->add_statuses());
  return grpc::Status::OK;
}

grpc::Status ContentService::Abort(grpc::ServerContext*, const wire::AbortRequest* request,
                                   google::protobuf::Empty*) {
  const Outcome<void> aborted = store_.abort(request->ref());
  return aborted ? grpc::Status::OK : to_status(aborted.error());
}

grpc::Status ContentService::Write(
    grpc::ServerContext*,
    grpc::ServerReaderWriter<wire::WriteContentResponse, wire::WriteContentRequest>* stream) {
  WriteSession session(store_);
  wire::WriteContentRequest request;  // kept over the messages, for its memory
  while (!session.committed() && stream->Read(&request)) {
    WriteMessage message{.action = WriteAction(request.action()),
                         .ref = request.ref(),
                         .total = request.total(),
                         .expected = request.expected(),
                         .offset = request.offset(),
                         .data = request.data(),
                         .labels = labels_from(request.labels())};
    if (request.action() < wire::STAT || request.action() > wire::COMMIT)
      return {grpc::StatusCode::INVALID_ARGUMENT, "unknown action"};
    const Outcome<WriteAnswer> answer = session.handle(message);
    if (!answer) return to_status(answer.error());
    wire::WriteContentResponse response;
    response.set_action(request.action());
    set_time(answer->started, response.mutable_started_at());
    set_time(answer->updated, response.mutable_updated_at());
    response.set_offset(answer->offset);
    response.set_total(answer->total);
    response.set_digest(answer->digest);
    if (!stream->Write(response)) return grpc::Status::CANCELLED;
    session.catch_up(request.data());
  }
  return grpc::Status::OK;
}

}  // namespace turnstile::content
