// containerd.services.content.v1.Content over gRPC: messages in and out, nothing else.
#pragma once

#include <containerd_content.grpc.pb.h>

#include "content/content_store.h"

namespace turnstile::content {

namespace wire = ::containerd::services::content::v1;

// Error classes become gRPC's status codes here and nowhere else.
grpc::Status to_status(const ContentError& error);

// All calls but Read, which is served by ReadCalls.
//
// Threads: gRPC's, one for each call under way, so that a call may wait for the disk.
class ContentService final : public wire::Content::WithRawMethod_Read<wire::Content::Service> {
 public:
  explicit ContentService(ContentStore& store) : store_(store) {}

  grpc::Status Info(grpc::ServerContext*, const wire::InfoRequest*, wire::InfoResponse*) override;
  grpc::Status Update(grpc::ServerContext*, const wire::UpdateRequest*, wire::UpdateResponse*) override;
  grpc::Status List(grpc::ServerContext*, const wire::ListContentRequest*,
                    grpc::ServerWriter<wire::ListContentResponse>*) override;
  grpc::Status Delete(grpc::ServerContext*, const wire::DeleteContentRequest*,
                      google::protobuf::Empty*) override;
  grpc::Status Status(grpc::ServerContext*, const wire::StatusRequest*, wire::StatusResponse*) override;
  grpc::Status ListStatuses(grpc::ServerContext*, const wire::ListStatusesRequest*,
                            wire::ListStatusesResponse*) override;
  grpc::Status Write(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<wire::WriteContentResponse, wire::WriteContentRequest>*) override;
  grpc::Status Abort(grpc::ServerContext*, const wire::AbortRequest*, google::protobuf::Empty*) override;

 private:
  ContentStore& store_;
};

}  // namespace turnstile::content
