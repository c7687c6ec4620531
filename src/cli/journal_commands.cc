// inspect, backup and restore: a server's journal, looked at and kept by whoever runs the server.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>
#include <filesystem>

#include "base/rfc3339.h"
#include "base/standard_streams.h"
#include "cli/journal_sight.h"
#include "cli/json.h"
#include "cli/metrics.h"
#include "cli/program.h"
#include "client/core.h"

namespace turnstile::cli {
namespace {

struct InspectOptions {
  std::string path;
  bool verify = false, dump = false;
};

struct BackupOptions {
  std::string from, file;
};

struct RestoreOptions {
  std::string file, directory;
};

std::string rfc3339(Time time) {
  std::string out;
  append_rfc3339(out, time);
  return out;
}

int fail(const Context& context, const Error& error) {
  return report(context.output, error.message, "journal", kUnexpected);
}

boost::json::object counts_json(const std::vector<std::pair<std::string, uint64_t>>& counts) {
  boost::json::object out;
  for (const auto& [name, count] : counts) out[name] = count;
  return out;
}

void print_sight_json(const InspectOptions& options, const JournalSight& sight) {
  boost::json::array files;
  for (const JournalSight::File& file : sight.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"records", file.records}});
  boost::json::object out{{"path", options.path},
                          {"kind", sight.is_backup ? "backup" : "directory"},
                          {"files", std::move(files)},
                          {"first_batch", sight.first_batch},
                          {"next_batch", sight.next_batch},
                          {"records", sight.records},
                          {"snapshot_records", sight.snapshot_records},
                          {"latest", rfc3339(sight.latest)},
                          {"torn", sight.torn},
                          {"facts", counts_json(sight.facts)},
                          {"records_by_kind", counts_json(sight.records_by_kind)}};
  if (sight.torn) out["torn_at"] = sight.torn_what;
  out["damaged_snapshots"] = to_json(sight.damaged_snapshots);
  print_json(out);
}

void print_sight(const InspectOptions& options, const JournalSight& sight) {
  print_output("{} {}: sound, batches {} to {}, {} records, the latest of {}\n",
               sight.is_backup ? "backup" : "journal", options.path, sight.first_batch, sight.next_batch - 1,
               sight.records, rfc3339(sight.latest));
  Table files({"FILE", "BYTES", "RECORDS"});
  for (const JournalSight::File& file : sight.files)
    files.add({file.name, fmt::to_string(file.bytes), fmt::to_string(file.records)});
  print_output("{}", files.text());
  for (const auto& [name, count] : sight.facts) print_output("{:<14}{}\n", name, count);
  print_output("{:<14}", "records");
  for (const auto& [name, count] : sight.records_by_kind) print_output("{} {}  ", count, name);
  print_output("\n");
  if (sight.torn)
    print_output(
        "unfinished    {}: a write that a crash has interrupted, or one under way; nobody had been "
        "answered\n",
        sight.torn_what);
  for (const std::string& damaged : sight.damaged_snapshots)
    print_output("damaged       {} (an older snapshot and the log still do)\n", one_line(damaged));
}

int verify(const Context& context, const InspectOptions& options) {
  const auto verdicts = verify_journal(options.path);
  if (!verdicts) return fail(context, verdicts.error());
  size_t faults = 0;
  for (const FileVerdict& each : *verdicts) {
    faults += each.fault.empty() ? 0 : 1;
    if (context.json()) {
      boost::json::object out{{"file", each.name}, {"sound", each.fault.empty()}};
      if (!each.fault.empty()) out["error"] = each.fault;
      print_json(out);
    } else {
      print_output("{}: {}\n", each.name, each.fault.empty() ? "sound" : each.fault);
    }
  }
  if (faults == 0) return kOk;
  return report(
      context.output,
      fmt::format("{} of {} files are damaged or missing: restore a backup", faults, verdicts->size()),
      "journal", kUnexpected);
}

int inspect(const Context& context, const InspectOptions& options) {
  if (options.verify) return verify(context, options);
  if (options.dump) {
    const auto done = dump_journal(options.path, [](const std::string& line) { write_output(line + "\n"); });
    return done ? int(kOk) : fail(context, done.error());
  }
  const auto sight = look_at_journal(options.path);
  if (!sight) return fail(context, sight.error());
  context.json() ? print_sight_json(options, *sight) : print_sight(options, *sight);
  return kOk;
}

struct Source {
  std::string directory;
  uint64_t life = 0;
};

// Where the journal of the server at this address is. Its life tells whether the directory of that name on
// this machine is really its own.
Expected<Source> source_of_server(const Context& context, const std::string& url) {
  Context there = context;
  there.servers = {url};
  const auto core = make_core(there);
  if (!core) return std::unexpected(core.error());
  const auto answer = (*core)->caller().call({.post = false, .target = "/version", .body = {}});
  if (!answer) return std::unexpected(answer.error().error);
  boost::system::error_code bad;
  const boost::json::value version = boost::json::parse(answer->body, bad);
  const boost::json::value* store = bad ? nullptr : version.find_pointer("/settings/store", bad);
  const boost::json::value* life = bad ? nullptr : version.find_pointer("/life", bad);
  Source source;
  const auto invalid = [&](std::string message) {
    return std::unexpected(
        ClientError{.code = ErrorCode::invalid, .message = std::move(message), .reason = {}, .nodes = {}});
  };
  if (store == nullptr || life == nullptr || !store->is_string() || !life->is_string())
    return invalid(fmt::format("{} does not tell where its journal is; name the directory", url));
  const std::string_view where = store->as_string(), number = life->as_string();
  if (where == "file")  // all that a client is told
    return invalid(
        fmt::format("this credential may not see where the journal of {} is: use one with the role read or "
                    "admin, or name the directory",
                    url));
  if (!where.starts_with("file:"))
    return invalid(
        fmt::format("{} keeps its state in {}, of which this program takes no backup", url, where));
  source.directory = where.substr(sizeof "file:" - 1);
  std::error_code ignored;
  if (!source.directory.starts_with('/') && !std::filesystem::is_directory(source.directory, ignored))
    return invalid(fmt::format(
        "{0} keeps its journal in '{1}', relative to the directory in which the server was started, "
        "and there is none here: run this in that directory, or start the server with --store "
        "file:/… and a whole path",
        url, source.directory));
  std::from_chars(number.data(), number.data() + number.size(), source.life, 16);
  return source;
}

int backup(const Context& context, const BackupOptions& options) {
  Source source{options.from, 0};
  if (options.from.find("://") != std::string::npos || options.from.starts_with("unix:")) {
    const Expected<Source> found = source_of_server(context, options.from);
    if (!found) return context.fail(found.error());
    source = *found;
  }
  const auto done = back_up(source.directory, source.life, options.file);
  if (!done) return fail(context, done.error());
  if (context.json()) {
    print_json(boost::json::object{{"file", options.file},
                                   {"bytes", done->bytes},
                                   {"records", done->records},
                                   {"next_batch", done->next_batch},
                                   {"latest", rfc3339(done->latest)}});
  } else {
    print_output("{}: {} records up to {}, {} bytes, read back\n", options.file, done->records,
                 rfc3339(done->latest), done->bytes);
  }
  return kOk;
}

int restore_command(const Context& context, const RestoreOptions& options) {
  const auto done = restore(options.file, options.directory);
  if (!done) return fail(context, done.error());
  if (context.json()) {
    print_json(boost::json::object{{"directory", options.directory},
                                   {"records", done->records},
                                   {"next_batch", done->next_batch},
                                   {"latest", rfc3339(done->latest)}});
  } else {
    print_output(
        "{}: {} records up to {}, read back. What was held then is held again when the server starts\n",
        options.directory, done->records, rfc3339(done->latest));
  }
  return kOk;
}

}  // namespace

void add_journal_commands(Command& program, Context& context) {
  auto look = std::make_shared<InspectOptions>();
  Command command = program.command(
      "inspect", "Look at a server's journal, also while it runs, or at a backup; changes nothing.",
      "  turnstile inspect /var/lib/turnstile/journal\n"
      "  turnstile inspect /var/lib/turnstile/journal --verify\n"
      "  turnstile inspect backup.tar --dump | jq 'select(.kind == \"hold_set\")'\n");
  command.option("PATH", look->path, "the directory of the journal, or a backup").required();
  Option check =
      command.flag("--verify", look->verify, "one line for each file; exit code 1 if one is damaged");
  const Option dump = command.flag("--dump", look->dump, "every record, as one JSON object a line");
  check.excludes(dump);
  command.runs(context, look, inspect);

  auto save = std::make_shared<BackupOptions>();
  command =
      program.command("backup", "Copy a server's journal into one file, while it runs.",
                      "  turnstile backup /var/lib/turnstile/journal /backup/turnstile-$(date +%F).tar\n"
                      "  turnstile backup http://127.0.0.1:8086 backup.tar   (on the server's machine)\n");
  command
      .option("FROM", save->from, "the directory of the journal, or the address of a server on this machine")
      .required();
  command.option("FILE", save->file, "the backup to write; must not exist").required();
  command.runs(context, save, backup);

  auto load = std::make_shared<RestoreOptions>();
  command =
      program.command("restore", "Make a journal from a backup, for a server to start on.",
                      "  turnstile restore /backup/turnstile-2026-11-18.tar /var/lib/turnstile/journal\n");
  command.option("FILE", load->file, "the backup").required();
  command.option("DIR", load->directory, "a new or empty directory").required();
  command.runs(context, load, restore_command);
}

}  // namespace turnstile::cli
