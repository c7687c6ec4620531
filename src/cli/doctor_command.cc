// doctor: everything that must be right between this machine and its servers, looked at once, each with what
// to do about it.
#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <chrono>

#include "base/standard_streams.h"
#include "base/version.h"
#include "cli/doctor.h"
#include "cli/json.h"
#include "cli/program.h"
#include "client/curl_transport.h"
#include "client/wall_time.h"

namespace turnstile::cli {
namespace {

using Level = Finding::Level;

constexpr std::chrono::seconds kPatience{5};
// Leases do not depend on clocks, but what people read, and new tokens after a restored backup, do.
constexpr std::chrono::milliseconds kGoodClock{1000}, kBadClock{60'000};
constexpr const char* kPluginRoot = "/var/lib/turnstile-content/blobs";
constexpr const char* kPluginSocket = "/run/turnstile-content/content.sock";

struct DoctorOptions {
  std::vector<std::string> shared;
  std::string containerd = "/etc/containerd/config.toml";
  std::string plugin;  // address of its /metrics
};

class Doctor {
 public:
  explicit Doctor(const ClientSettings& settings) : transport_(settings) {}

  void look_at_server(const std::string& url) {
    const std::string check = "server " + url;
    const auto began = std::chrono::system_clock::now();
    const auto version = get(url, "/version");
    if (!version) {
      add(Level::failure, check, version.error().message, advice_for(version.error()));
      return;
    }
    const auto took = std::chrono::system_clock::now() - began;
    if (version->status == 401 || version->status == 403) return add_refusal(url, *version);
    boost::system::error_code bad;
    const boost::json::value parsed = boost::json::parse(version->body, bad);
    const boost::json::value* number = bad ? nullptr : parsed.find_pointer("/version", bad);
    if (version->status != 200 || number == nullptr || !number->is_string()) {
      add(Level::failure, check,
          fmt::format("something answers (status {}), but it is no turnstiled", version->status),
          "is the port right? is a proxy in front of it?");
      return;
    }
    add(Level::good, check,
        fmt::format("answers in {} ms", std::chrono::duration_cast<Milliseconds>(took).count()), "");
    findings_.push_back(check_versions(url, kVersion, std::string_view(number->as_string())));
    look_at_clock(url, parsed, began + took / 2);
    look_at_credential(url);
    look_at_readiness(url);
  }

  void look_at_plugin(const std::string& address) {
    const std::string url = address.find("://") == std::string::npos ? "http://" + address : address;
    const std::string check = "plugin " + url;
    const auto ready = get(url, "/readyz");
    if (!ready)
      return add(Level::failure, check, ready.error().message,
                 "systemctl status turnstile-content; --metrics-listen says where it serves /readyz");
    if (ready->status == 200) return add(Level::good, check, "is ready", "");
    add(Level::failure, check, fmt::format("is not ready: {}", one_line(ready->body)),
        "journalctl -u turnstile-content; does it reach its lock server?");
  }

  void take(std::vector<Finding> findings) { std::ranges::move(findings, std::back_inserter(findings_)); }
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  std::expected<client::Answer, client::TransportError> get(const std::string& server,
                                                            std::string_view target) {
    client::Exchange exchange;
    exchange.server = server;
    exchange.target = target;
    exchange.timeout = kPatience;
    return transport_.exchange(exchange);
  }
  void add(Level level, std::string check, std::string message, std::string advice) {
    findings_.push_back({level, std::move(check), std::move(message), std::move(advice)});
  }

  static std::string advice_for(const client::TransportError& error) {
    switch (error.fault) {
      case client::Fault::unreachable:
        return "is turnstiled running there? systemctl status turnstiled; a firewall? it listens on "
               "127.0.0.1 only unless told "
               "otherwise";
      case client::Fault::timed_out:
        return "something accepts the connection and does not answer: a firewall that drops packets, or a "
               "server that hangs";
      case client::Fault::untrusted:
        return "its certificate does not verify: name the authority with --ca, and the server as its "
               "certificate does";
      case client::Fault::misconfigured:
        return "look at the files and addresses that were given";
      default:
        return "try again; the server's log says more";
    }
  }

  void look_at_clock(const std::string& url, const boost::json::value& version,
                     std::chrono::system_clock::time_point now) {
    boost::system::error_code bad;
    const boost::json::value* time = version.find_pointer("/time", bad);
    if (bad || time == nullptr || !time->is_string()) return;  // an older server does not tell
    const auto there = client::parse_wall_time(std::string_view(time->as_string()));
    if (!there) return;
    const auto off =
        std::chrono::duration_cast<Milliseconds>(*there - std::chrono::floor<WallTime::duration>(now));
    const auto by = std::chrono::abs(off);
    const std::string message = fmt::format("the server's is {} {} this machine's", show_duration(by),
                                            off.count() < 0 ? "behind" : "ahead of");
    if (by <= kGoodClock) return add(Level::good, "clock of " + url, "agrees with this machine's", "");
    add(by > kBadClock ? Level::failure : Level::warning, "clock of " + url, message,
        "run NTP on both (timedatectl). Leases do not depend on it; times that people read, and tokens after "
        "a restored backup, do");
  }

  // The server's code tells two kinds of 403 apart; a proxy's answer has none.
  void add_refusal(const std::string& url, const client::Answer& answer) {
    const std::string check = "credential for " + url;
    if (answer.status == 401)
      return add(Level::failure, check, "credential missing or unknown (401)",
                 "give one that the server knows (see --help); an administrator makes it");
    boost::system::error_code bad;
    const boost::json::value body = boost::json::parse(answer.body, bad);
    const boost::json::value* code = bad ? nullptr : body.find_pointer("/code", bad);
    if (code != nullptr && *code == "foreign_origin")
      return add(Level::failure, "name of " + url,
                 "the server does not know this name as its own (403 foreign_origin)",
                 "if the name is right, start the server with --host NAME");
    add(Level::failure, check, "the server knows the credential, but does not allow this (403)",
        "ask for another role");
  }
  void look_at_credential(const std::string& url) {
    const auto locks = get(url, "/locks?limit=1");
    if (!locks)
      return add(Level::failure, "credential for " + url, locks.error().message, advice_for(locks.error()));
    if (locks->status == 401 || locks->status == 403) return add_refusal(url, *locks);
    if (locks->status == 200) return add(Level::good, "credential for " + url, "may read the locks", "");
    // A standby sends elsewhere, a server that stops refuses: readiness tells.
  }
  void look_at_readiness(const std::string& url) {
    const auto ready = get(url, "/readyz");
    const std::string check = "readiness of " + url;
    if (!ready) return add(Level::failure, check, ready.error().message, advice_for(ready.error()));
    if (ready->status == 200) return add(Level::good, check, "can lock", "");
    if (ready->status == 401 || ready->status == 403) return;
    add(Level::warning, check, fmt::format("does not lock now: {}", one_line(ready->body)),
        "normal for a standby, if another server leads; else look at the server's log and its disk");
  }

  client::CurlTransport transport_;
  std::vector<Finding> findings_;
};

bool exists(const char* path) {
  struct stat status;
  return ::stat(path, &status) == 0;
}

int show(const Context& context, const std::vector<Finding>& findings) {
  size_t failures = 0, warnings = 0;
  boost::json::array list;
  for (const Finding& each : findings) {
    failures += each.level == Level::failure ? 1 : 0;
    warnings += each.level == Level::warning ? 1 : 0;
    if (context.json()) {
      boost::json::object row{
          {"level", to_string(each.level)}, {"check", each.check}, {"message", each.message}};
      if (!each.advice.empty()) row["advice"] = each.advice;
      list.emplace_back(std::move(row));
    } else {
      print_output("{:<8} {}: {}\n", to_string(each.level), each.check, each.message);
      if (!each.advice.empty()) print_output("{:<8} → {}\n", "", each.advice);
    }
  }
  if (context.json()) {
    print_json(
        boost::json::object{{"findings", std::move(list)}, {"failures", failures}, {"warnings", warnings}});
  } else {
    print_output("{} findings: {} failures, {} warnings\n", findings.size(), failures, warnings);
  }
  return failures == 0 ? kOk : kUnexpected;
}

int doctor(const Context& context, const DoctorOptions& options) {
  const Expected<ClientSettings> settings = context.settings(0);
  if (!settings) return context.fail(settings.error());
  // create() checks them.
  if (const Expected<LockClient> client = context.client(0); !client) return context.fail(client.error());
  Doctor doctor(*settings);
  for (const std::string& server : settings->servers) doctor.look_at_server(server);
  std::vector<std::string> directories = options.shared;
  if (directories.empty() && exists(kPluginRoot)) directories.emplace_back(kPluginRoot);
  for (const std::string& directory : directories) doctor.take(check_shared_directory(directory));
  doctor.take(check_containerd(options.containerd));
  if (!options.plugin.empty())
    doctor.look_at_plugin(options.plugin);
  else if (exists(kPluginSocket))
    doctor.look_at_plugin("127.0.0.1:8087");
  return show(context, doctor.findings());
}

}  // namespace

void add_doctor_command(Command& program, Context& context) {
  auto options = std::make_shared<DoctorOptions>();
  Command command = program.command(
      "doctor", "Check everything between this machine and its servers, and say what to do.",
      "  turnstile doctor\n"
      "  turnstile doctor --server https://a:8086,https://b:8086 --shared /srv/blobs --output json\n"
      "Exit code 1: something has failed; 0: nothing has, there may be warnings.\n");
  command
      .list("--shared", options->shared,
            "a directory that the content plugins share (the package's, if it is there)")
      .shown_as("DIR[,DIR...]");
  command
      .option("--containerd-config", options->containerd,
              "containerd's settings (/etc/containerd/config.toml)")
      .shown_as("FILE");
  command
      .option("--plugin", options->plugin,
              "where turnstile-content serves /readyz (127.0.0.1:8087, if its socket is there)")
      .shown_as("HOST:PORT");
  command.runs(context, options, doctor);
}

}  // namespace turnstile::cli
