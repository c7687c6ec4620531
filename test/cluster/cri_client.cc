// cri_client SOCKET pull|list|remove [IMAGE]: what kubelet asks a node's containerd about images. Debian 12
// has no crictl, and this is all that the tests need of it.
#include <cri_images.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <string>

namespace {

namespace wire = ::runtime::v1;

int report(const grpc::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%d %s\n", int(status.error_code()), status.error_message().c_str());
  return 1;
}

int list(wire::ImageService::Stub& images) {
  grpc::ClientContext context;
  wire::ListImagesResponse response;
  const grpc::Status status = images.ListImages(&context, {}, &response);
  for (const wire::Image& image : response.images())
    for (const std::string& tag : image.repo_tags()) std::printf("%s\n", tag.c_str());
  return report(status);
}

int pull(wire::ImageService::Stub& images, const std::string& image) {
  grpc::ClientContext context;
  wire::PullImageRequest request;
  wire::PullImageResponse response;
  request.mutable_image()->set_image(image);
  return report(images.PullImage(&context, request, &response));
}

int remove(wire::ImageService::Stub& images, const std::string& image) {
  grpc::ClientContext context;
  wire::RemoveImageRequest request;
  wire::RemoveImageResponse response;
  request.mutable_image()->set_image(image);
  return report(images.RemoveImage(&context, request, &response));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[2] : "", image = argc > 3 ? argv[3] : "";
  if (command.empty() || image.empty() != (command == "list")) {
    std::fprintf(stderr, "cri_client SOCKET pull|list|remove [IMAGE]\n");
    return 2;
  }
  const auto images = wire::ImageService::NewStub(
      grpc::CreateChannel("unix:" + std::string(argv[1]), grpc::InsecureChannelCredentials()));
  if (command == "list") return list(*images);
  if (command == "pull") return pull(*images, image);
  return remove(*images, image);
}
