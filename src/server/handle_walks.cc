// The calls that look at very many resources.
#include "api/answer_writer.h"
#include "server/loop_handler.h"

namespace turnstile {

http::Outcome LoopHandler::list(const ListCommand& command, const Request& request, Responder& responder) {
  const ListAnswer answer = service_->engine().list(command, service_->now(), fresh());
  std::optional<LaneName> next;
  if (answer.more) next = answer.page.back().lane;
  return respond(request, responder, append_list_answer(body_, answer.page, next));
}

http::Outcome LoopHandler::release_node(const ReleaseNodeCommand& command, const Request& request,
                                        Responder& responder) {
  const ReferencesAnswer answer =
      service_->engine().release_node(command.node, service_->now(), fresh());
  return respond(request, responder, append_release_node_answer(body_, answer, command.node));
}

}  // namespace turnstile
