// The nine calls over a real socket, with gRPC's own client.
#include "content/service.h"

#include <containerd_content.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "content/server.h"
#include "content/test_directory.h"

namespace turnstile::content {
namespace {

namespace wire = ::containerd::services::content::v1;

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    socket_ = directory_ / "run/content.sock";
    Result<std::unique_ptr<Server>> server = Server::start(*node_, socket_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(16 << 20);
    client_ = wire::Content::NewStub(
        grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), arguments));
  }

  grpc::Status put(const std::string& ref, const std::string& bytes) {
    grpc::ClientContext context;
    auto stream = client_->Write(&context);
    wire::WriteContentRequest request;
    wire::WriteContentResponse response;
    request.set_ref(ref);
    request.set_action(wire::COMMIT);
    request.set_data(bytes);
    stream->Write(request);
    stream->WritesDone();
    if (stream->Read(&response)) {
      EXPECT_EQ(response.digest(), digest_of(bytes).text());
    }
    return stream->Finish();
  }
  // What Read sends, and in how many messages.
  std::pair<grpc::Status, std::string> get(const std::string& digest, int64_t offset, int64_t size,
                                           size_t* messages = nullptr) {
    grpc::ClientContext context;
    wire::ReadContentRequest request;
    request.set_digest(digest);
    request.set_offset(offset);
    request.set_size(size);
    auto reader = client_->Read(&context, request);
    wire::ReadContentResponse response;
    std::string bytes;
    while (reader->Read(&response)) {
      EXPECT_EQ(response.offset(), std::max<int64_t>(offset, 0) + int64_t(bytes.size()));
      bytes += response.data();
      if (messages != nullptr) ++*messages;
    }
    return {reader->Finish(), bytes};
  }
  template <class Call, class Request, class Response>
  grpc::StatusCode code(Call call, const Request& request, Response& response) {
    grpc::ClientContext context;
    return ((*client_).*call)(&context, request, &response).error_code();
  }

  TestDirectory directory_;
  std::string socket_;
  std::unique_ptr<ContentStore> node_ = open_node(directory_ / "root", directory_ / "state");
  std::unique_ptr<Server> server_;
  std::unique_ptr<wire::Content::Stub> client_;
};

TEST_F(ServiceTest, TheSocketIsForThisUserOnly) {
  struct stat status;
  ASSERT_EQ(::stat(socket_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((directory_ / "run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  std::ofstream(directory_ / "run/file") << "not a socket";
  EXPECT_FALSE(Server::start(*node_, directory_ / "run/file"));
  EXPECT_FALSE(Server::start(*node_, socket_)) << "somebody listens there";
}

TEST_F(ServiceTest, ItsDirectoryMayBeEnteredByOthersButNotWrittenTo) {
  const auto starts_in = [&](const std::string& below, mode_t mode) {
    std::filesystem::create_directories(directory_ / below);
    ::chmod((directory_ / below).c_str(), mode);
    const Result<std::unique_ptr<Server>> server =
        Server::start(*node_, directory_ / (below + "/content.sock"));
    EXPECT_TRUE(server || server.error().message.find("replace the socket") != std::string::npos);
    return server.has_value();
  };
  EXPECT_TRUE(starts_in("entered", 0711));
  EXPECT_TRUE(starts_in("read", 0755));
  EXPECT_FALSE(starts_in("group", 0770));
  EXPECT_FALSE(starts_in("all", 0777));
  EXPECT_FALSE(starts_in("sticky", 01777)) << "a name that is free there is anybody's";
  EXPECT_FALSE(starts_in("all/below", 0700)) << "whoever renames its parent replaces it";
  EXPECT_TRUE(starts_in("sticky/below", 0700)) << "nobody else may rename it";
}

// As a service manager makes it.
UniqueFd socket_at(const std::string& path, mode_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::chmod(path.c_str(), mode);
  ::listen(fd.get(), 8);
  return fd;
}

TEST_F(ServiceTest, ASocketThatWasPassedIsServedAndOutlivesTheServer) {
  const std::string path = directory_ / "run/passed.sock";
  const UniqueFd managers = socket_at(path, 0600);
  Result<std::unique_ptr<Server>> server = Server::start(*node_, path, UniqueFd(::dup(managers.get())));
  ASSERT_TRUE(server) << server.error().message;
  const auto client =
      wire::Content::NewStub(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  wire::ListStatusesResponse response;
  EXPECT_TRUE(client->ListStatuses(&context, {}, &response).ok());
  server->reset();
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(::listen(managers.get(), 8), 0) << "it listens on";
}

TEST_F(ServiceTest, ASocketThatWasPassedMustBeTheOneThatWasNamedAndClosed) {
  const UniqueFd elsewhere = socket_at(directory_ / "run/elsewhere.sock", 0600);
  const auto refused = [&](const UniqueFd& fd, const std::string& path) {
    const Result<std::unique_ptr<Server>> server = Server::start(*node_, path, UniqueFd(::dup(fd.get())));
    return server ? "" : server.error().message;
  };
  EXPECT_NE(refused(elsewhere, directory_ / "run/x.sock").find("but --socket says"), std::string::npos);
  const UniqueFd open = socket_at(directory_ / "run/open.sock", 0666);
  EXPECT_NE(refused(open, directory_ / "run/open.sock").find("SocketMode=0600"), std::string::npos);
  const UniqueFd tcp(::socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_NE(refused(tcp, directory_ / "run/x.sock").find("but --socket says"), std::string::npos);
}

TEST_F(ServiceTest, ReadsWhatWasWritten) {
  std::string bytes(3'000'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i * 7 + i / 1000);
  ASSERT_TRUE(put("r", bytes).ok());
  const std::string digest = digest_of(bytes).text();
  size_t messages = 0;
  EXPECT_EQ(get(digest, 0, 0, &messages).second, bytes);
  EXPECT_EQ(messages, 3u);  // of 1 MiB
  EXPECT_EQ(get(digest, 100, 32768).second, bytes.substr(100, 32768));
  EXPECT_EQ(get(digest, -5, 10).second, bytes.substr(0, 10));
  EXPECT_EQ(get(digest, 2'999'990, 100).second, bytes.substr(2'999'990));
  EXPECT_EQ(get(digest, 1'500'000, INT64_MAX).second, bytes.substr(1'500'000));
  const auto end = get(digest, 3'000'000, 1);
  EXPECT_TRUE(end.first.ok());
  EXPECT_TRUE(end.second.empty());
}

TEST_F(ServiceTest, AMessageOfEightMebibytesIsTaken) {
  const std::string bytes(8 << 20, 'x');
  EXPECT_TRUE(put("r", bytes).ok());
  EXPECT_EQ(get(digest_of(bytes).text(), 0, 0).second.size(), bytes.size());
}

TEST_F(ServiceTest, P10_EveryMistakeHasTheClassThatContainerdUnderstands) {
  using Code = grpc::StatusCode;
  ASSERT_TRUE(put("r", "abc").ok());
  wire::InfoRequest info;
  wire::InfoResponse info_response;
  info.set_digest("../../etc/passwd");
  EXPECT_EQ(code(&wire::Content::Stub::Info, info, info_response), Code::INVALID_ARGUMENT);
  info.set_digest(digest_of("none").text());
  EXPECT_EQ(code(&wire::Content::Stub::Info, info, info_response), Code::NOT_FOUND);
  info.set_digest(digest_of("abc").text());
  EXPECT_EQ(code(&wire::Content::Stub::Info, info, info_response), Code::OK);

  EXPECT_EQ(get(digest_of("abc").text(), 4, 1).first.error_code(), Code::OUT_OF_RANGE);
  EXPECT_EQ(get(digest_of("none").text(), 0, 1).first.error_code(), Code::NOT_FOUND);
  EXPECT_EQ(get("sha256:/", 0, 1).first.error_code(), Code::INVALID_ARGUMENT);
  EXPECT_EQ(put("", "x").error_code(), Code::INVALID_ARGUMENT);
  EXPECT_EQ(put("other", "abc").error_code(), Code::ALREADY_EXISTS);

  google::protobuf::Empty empty;
  wire::DeleteContentRequest remove;
  remove.set_digest("x");
  EXPECT_EQ(code(&wire::Content::Stub::Delete, remove, empty), Code::INVALID_ARGUMENT);
  remove.set_digest(digest_of("none").text());
  EXPECT_EQ(code(&wire::Content::Stub::Delete, remove, empty), Code::OK);
  wire::StatusRequest status;
  wire::StatusResponse status_response;
  status.set_ref("none");
  EXPECT_EQ(code(&wire::Content::Stub::Status, status, status_response), Code::NOT_FOUND);
  wire::AbortRequest abort;
  abort.set_ref("none");
  EXPECT_EQ(code(&wire::Content::Stub::Abort, abort, empty), Code::OK);
  wire::ListStatusesRequest statuses;
  wire::ListStatusesResponse statuses_response;
  statuses.add_filters("ref=");
  EXPECT_EQ(code(&wire::Content::Stub::ListStatuses, statuses, statuses_response), Code::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, ListsAHundredAMessage) {
  for (int i = 0; i < 101; ++i) ASSERT_TRUE(put("r", "blob " + std::to_string(i)).ok());
  grpc::ClientContext context;
  auto reader = client_->List(&context, {});
  wire::ListContentResponse response;
  std::vector<int> sizes;
  while (reader->Read(&response)) sizes.push_back(response.info_size());
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(sizes, (std::vector<int>{100, 1}));
}

TEST_F(ServiceTest, ACancelledStreamKeepsItsIngestAndFreesItsRef) {
  {
    grpc::ClientContext context;
    auto stream = client_->Write(&context);
    wire::WriteContentRequest request;
    wire::WriteContentResponse response;
    request.set_ref("r");
    request.set_action(wire::WRITE);
    request.set_data("abc");
    stream->Write(request);
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.offset(), 3);
    context.TryCancel();
    stream->Finish();
  }
  EXPECT_EQ(node_->status("r")->offset, 3);
  EXPECT_TRUE(put("r", "abcdef").ok());  // taken again within a moment; written from the beginning
}

TEST_F(ServiceTest, AReaderThatGoesAwayInTheMiddleHarmsNobody) {
  const std::string bytes(5 << 20, 'y');
  ASSERT_TRUE(put("r", bytes).ok());
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    wire::ReadContentRequest request;
    request.set_digest(digest_of(bytes).text());
    auto reader = client_->Read(&context, request);
    wire::ReadContentResponse response;
    ASSERT_TRUE(reader->Read(&response));
    context.TryCancel();
    reader->Finish();
  }
  EXPECT_EQ(get(digest_of(bytes).text(), 0, 0).second, bytes);
}

}  // namespace
}  // namespace turnstile::content
