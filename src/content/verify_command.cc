// See verify_command.h.
#include "content/verify_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

#include "base/log.h"
#include "content/command_progress.h"
#include "content/node_state.h"
#include "content/verification.h"

namespace turnstile::content {
namespace {

std::vector<BlobInfo> choose_some(std::vector<BlobInfo> all, const CommandSettings& settings) {
  size_t count = settings.sample.value_or(all.size());
  if (settings.percentage) count = size_t(std::ceil(double(all.size()) * *settings.percentage / 100));
  if (count >= all.size()) return all;
  std::vector<BlobInfo> some;
  std::ranges::sample(all, std::back_inserter(some), std::ptrdiff_t(count),
                      std::mt19937(std::random_device()()));
  return some;
}

class Verification {
 public:
  Verification(const BlobStore& blobs, const NodeState& state, const Settings& settings)
      : blobs_(blobs), all_(state.all()), put_away_(settings.of_command.put_away) {
    all_ = choose_some(std::move(all_), settings.of_command);
    for (const BlobInfo& info : all_) bytes_ += info.size;
  }

  int run(int64_t rate, const std::string& state) {
    CommandProgress progress("verify", all_.size(), bytes_);
    Pace pace(double(rate), std::stop_token{}, [&](size_t bytes) { progress.read(bytes); });
    std::vector<Finding> bad;
    verify_blobs(blobs_, all_, pace, [&](Finding finding) {
      progress.blob_done();
      if (finding.kind == Finding::Kind::intact) return;
      finding.why = describe(finding);
      finding.seen = {};  // there may be many
      bad.push_back(std::move(finding));
    });
    // What containerd has removed since the list was made was bound to be missing.
    if (const Outcome<std::unique_ptr<const NodeState>> now = NodeState::open_to_look(state); now)
      std::erase_if(bad, [&](const Finding& finding) { return !(*now)->has(finding.digest); });
    for (const Finding& finding : bad) progress.say(finding.why);
    progress.say(fmt::format("{} blobs, {}: {}", all_.size(), show_bytes(bytes_),
                             bad.empty() ? "all intact" : fmt::format("{} missing or damaged", bad.size())));
    if (bad.empty()) return 0;
    give_advice(progress, bad);
    return 1;
  }

 private:
  std::string describe(const Finding& finding) const {
    const std::string& digest = finding.digest.text();
    switch (finding.kind) {
      case Finding::Kind::gone:
        return fmt::format("{} gone: no root has it{}", digest,
                           blobs_.has_read_roots() ? "; is every --read-root mounted?" : "");
      case Finding::Kind::unpublished:
        return fmt::format("{} gone: only this node still has it, under a name of its own", digest);
      case Finding::Kind::damaged:
        return fmt::format("{} damaged: the file holds other bytes{}", digest, put_away(finding));
      default:
        return fmt::format("{} not known: {}", digest, finding.why);
    }
  }

  std::string put_away(const Finding& finding) const {
    if (!put_away_) return {};
    const Outcome<bool> away = blobs_.put_damaged_away(finding.digest, finding.seen);
    if (!away) return "; not put away: " + away.error().message;
    return *away ? "; put away" : "; it is not in this node's --root: run this where it is";
  }

  void give_advice(CommandProgress& progress, const std::vector<Finding>& bad) const {
    const auto some = [&](Finding::Kind kind) {
      return std::ranges::any_of(bad, [&](const Finding& finding) { return finding.kind == kind; });
    };
    if (some(Finding::Kind::damaged) && !put_away_)
      progress.say(
          "damaged: say 'turnstile-content verify --put-away' first, so that no node uses that file any "
          "more");
    if (some(Finding::Kind::unpublished))
      progress.say("only this node has it: a restart of turnstile-content publishes it again");
    progress.say(
        "to heal an image, on each node that has it: ctr images rm --sync IMAGE, then pull it again "
        "(docs/containerd.md, \"What is gone or damaged\")");
  }

  const BlobStore& blobs_;
  std::vector<BlobInfo> all_;
  int64_t bytes_ = 0;
  const bool put_away_;
};

}  // namespace

int run_verify(const Settings& settings) {
  set_log(settings.log_level, LogFormat::text);
  const Outcome<std::unique_ptr<const NodeState>> state = NodeState::open_to_look(settings.state);
  if (!state) return command_failed(state.error().message);
  const Outcome<BlobStore> blobs =
      BlobStore::open_to_look({settings.root, settings.read_roots, settings.node});
  if (!blobs) return command_failed(blobs.error().message);
  return Verification(*blobs, **state, settings).run(settings.of_command.rate, settings.state);
}

}  // namespace turnstile::content
