// Calls as a client sees them, over a real socket.
#include "rpc/server.h"

#include "rpc/message_reader.h"
#include "rpc/test_server.h"

namespace turnstile::rpc {
namespace {

using Texts = std::vector<std::string>;

TEST_F(ServerTest, AnswersOneMessageOnTheLoop) {
  TestClient client(socket_);
  const Answer answer = client.call("/t/Echo", "hello");
  EXPECT_EQ(answer.headers.at(":status"), "200");
  EXPECT_EQ(answer.headers.at("content-type"), "application/grpc");
  EXPECT_EQ(answer.messages(), Texts{"hello"});
  EXPECT_EQ(answer.trailers.at("grpc-status"), "0");
  EXPECT_FALSE(answer.trailers.contains("grpc-message"));
  EXPECT_EQ(events_.count("at once"), 1u);
}

TEST_F(ServerTest, AnswersOneMessageOnAThread) {
  TestClient client(socket_);
  const Answer answer = client.call("/t/EchoOnThread", "hello");
  EXPECT_EQ(answer.messages(), Texts{"hello"});
  EXPECT_EQ(answer.status(), 0);
}

TEST_F(ServerTest, AMethodThatDeclinesToAnswerAtOnceRunsOnAThread) {
  TestClient client(socket_);
  EXPECT_EQ(client.call("/t/Decline", "hello").messages(), Texts{"hello"});
  EXPECT_EQ(events_.count("declined"), 1u);
}

TEST_F(ServerTest, ARequestWithoutAMessageIsNotAnsweredAtOnce) {
  TestClient client(socket_);
  const int32_t call = client.begin("/t/Echo");
  client.end(call);
  ASSERT_TRUE(client.await_end(call));
  EXPECT_EQ(client.answer(call).status(), 0);
  EXPECT_EQ(events_.count("at once"), 0u);
}

TEST_F(ServerTest, MessagesGoBothWaysWhileTheCallIsOpen) {
  TestClient client(socket_);
  const int32_t call = client.begin("/t/EchoOnThread");
  Texts sent;
  for (const size_t size : {0, 1, 70'000, 5}) {
    sent.push_back(std::string(size, 'm'));
    client.send(call, framed(sent.back()));
    ASSERT_TRUE(client.await([&] { return client.answer(call).messages() == sent; }));
  }
  EXPECT_EQ(client.answer(call).status(), -1);
  client.end(call);
  ASSERT_TRUE(client.await_end(call));
  EXPECT_EQ(client.answer(call).status(), 0);
}

TEST_F(ServerTest, ManyCallsShareAConnection) {
  TestClient client(socket_);
  std::vector<int32_t> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(client.begin(i % 2 ? "/t/Echo" : "/t/EchoOnThread"));
    client.send(calls.back(), framed("call " + std::to_string(i)));
  }
  for (const int32_t call : calls) client.end(call);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(client.await_end(calls[size_t(i)]));
    EXPECT_EQ(client.answer(calls[size_t(i)]).messages(), Texts{"call " + std::to_string(i)});
  }
}

TEST_F(ServerTest, AMessageOfTheLargestSizePassesAWindowThatIsSmaller) {
  TestClient client(socket_);
  const std::string message(limits_.max_message, 'x');
  const Answer answer = client.call("/t/EchoOnThread", message);
  EXPECT_EQ(answer.status(), 0);
  EXPECT_TRUE(answer.messages() == Texts{message});
}

TEST_F(ServerTest, AnswersFromMemoryElsewhereArriveWhole) {
  TestClient client(socket_);
  const Answer answer = client.call("/t/Large", "5000000");
  const Texts messages = answer.messages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages[0] == "5000000:" + std::string(5'000'000, 'x'));
  EXPECT_EQ(answer.status(), 0);
}

TEST_F(ServerTest, AnUnknownMethodIsUnimplemented) {
  TestClient client(socket_);
  const Answer answer = client.call("/t/None", "x");
  EXPECT_EQ(answer.status(), int(Code::unimplemented));
  EXPECT_EQ(answer.text(), "there is no method /t/None");
  EXPECT_TRUE(answer.trailers.empty());  // it is all one block of headers
  EXPECT_EQ(client.call("/t/Echo", "next").status(), 0);
}

TEST_F(ServerTest, WhatIsNotGrpcIsToldSo) {
  TestClient client(socket_);
  const int32_t get =
      client.begin({{":method", "GET"}, {":scheme", "http"}, {":authority", "test"}, {":path", "/t/Echo"}});
  client.end(get);
  ASSERT_TRUE(client.await_end(get));
  EXPECT_EQ(client.answer(get).status(), int(Code::invalid_argument));
  const int32_t json = client.begin({{":method", "POST"},
                                     {":scheme", "http"},
                                     {":authority", "test"},
                                     {":path", "/t/Echo"},
                                     {"content-type", "application/json"}});
  client.end(json);
  ASSERT_TRUE(client.await_end(json));
  EXPECT_EQ(client.answer(json).status(), int(Code::invalid_argument));
}

TEST_F(ServerTest, AnErrorMayComeAfterMessages) {
  TestClient client(socket_);
  const Answer answer = client.call("/t/FailLate", "too far");
  EXPECT_EQ(answer.messages(), Texts{"some"});
  EXPECT_EQ(answer.trailers.at("grpc-status"), "11");
  EXPECT_EQ(answer.trailers.at("grpc-message"), "too far");
}

TEST_F(ServerTest, TheTextOfAnErrorIsEscaped) {
  TestClient client(socket_);
  const Answer answer = client.call("/t/Fail", "100 % größer\nals ~");
  EXPECT_EQ(answer.status(), int(Code::not_found));
  EXPECT_EQ(answer.text(), "100 %25 gr%C3%B6%C3%9Fer%0Aals ~");
}

TEST_F(ServerTest, AMessageThatIsTooLargeEndsTheCallBeforeItHasCome) {
  TestClient client(socket_);
  for (const char* path : {"/t/Echo", "/t/ReadAll"}) {
    const int32_t call = client.begin(path);
    const auto prefix = prefix_of(limits_.max_message + 1);
    client.send(call, {prefix.data(), prefix.size()});
    ASSERT_TRUE(client.await_end(call)) << path;
    EXPECT_EQ(client.answer(call).status(), int(Code::resource_exhausted));
    EXPECT_EQ(client.answer(call).reset, uint32_t(NGHTTP2_NO_ERROR));  // no need to send the rest
  }
  EXPECT_TRUE(events_.await("reading ended"));
  EXPECT_EQ(client.call("/t/Echo", "next").status(), 0);
}

TEST_F(ServerTest, ACompressedMessageIsUnimplemented) {
  TestClient client(socket_);
  const int32_t call = client.begin("/t/Echo");
  client.send(call, std::string("\1\0\0\0\1x", 6));
  ASSERT_TRUE(client.await_end(call));
  EXPECT_EQ(client.answer(call).status(), int(Code::unimplemented));
}

TEST_F(ServerTest, ARequestThatIsResetEndsTheMethodsRead) {
  TestClient client(socket_);
  const int32_t call = client.begin("/t/ReadAll");
  ASSERT_TRUE(events_.await("reading"));
  client.reset(call);
  EXPECT_TRUE(events_.await("reading ended"));
  EXPECT_EQ(client.call("/t/Echo", "next").status(), 0);
}

TEST_F(ServerTest, AClientThatHasGoneEndsItsMethodsReadsAndWrites) {
  {
    TestClient client(socket_, {.window = 1000, .grants = false});
    client.begin("/t/ReadAll");
    client.end(client.begin("/t/Flood"));
    ASSERT_TRUE(events_.await("reading"));
    ASSERT_TRUE(events_.await("written"));
  }
  EXPECT_TRUE(events_.await("reading ended"));
  EXPECT_TRUE(events_.await("flood ended"));
}

}  // namespace
}  // namespace turnstile::rpc
