// Reading the credentials file. Apart from credentials.cc, because looking up is short and must be looked at
// closely, and reading is long and must be polite.
#include <fmt/format.h>
#include <pwd.h>
#include <toml++/toml.h>

#include <charconv>
#include <optional>

#include "access/credentials.h"
#include "access/secret.h"
#include "base/file_text.h"

namespace turnstile::access {

std::optional<uint32_t> user_of_this_machine(const std::string& name) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) return number;
  std::vector<char> texts(16 * 1024);
  passwd entry{}, *found = nullptr;
  getpwnam_r(name.c_str(), &entry, texts.data(), texts.size(), &found);
  if (found == nullptr) return std::nullopt;
  return found->pw_uid;
}

// Reads one file. The first fault is remembered with its line; what is read behind it is thrown away.
class CredentialsReader {
 public:
  CredentialsReader(std::string path, const FindUser& find_user)
      : path_(std::move(path)), find_user_(find_user) {}

  Result<CredentialsPtr> read(std::string_view text) {
    try {
      const toml::table table = toml::parse(text, path_);
      for (const auto& [key, node] : table) {
        if (key.str() == "credential")
          each_table(key, node, [this](const toml::table& entry) { add_secret(entry); });
        else if (key.str() == "certificate")
          each_table(key, node, [this](const toml::table& entry) { add_certificate(entry); });
        else if (key.str() == "unix_user")
          each_table(key, node, [this](const toml::table& entry) { add_user(entry); });
        else
          fault(key.source(), fmt::format("'{}' is unknown here; write [[credential]], [[certificate]] or "
                                          "[[unix_user]]",
                                          key.str()));
      }
    } catch (const toml::parse_error& error) {
      fault(error.source(), std::string(error.description()));
    }
    if (fault_.empty() && made_->size() == 0)
      fault_ = fmt::format(
          "{}: it names nobody; write at least one [[credential]], [[certificate]] or [[unix_user]]", path_);
    if (!fault_.empty()) return fail(fault_);
    return CredentialsPtr(made_);
  }

 private:
  template <class Add>
  void each_table(const toml::key& key, const toml::node& node, Add add) {
    const toml::array* list = node.as_array();
    if (list == nullptr || !list->is_array_of_tables())
      return fault(key.source(), fmt::format("write [[{}]], with two brackets, before each", key.str()));
    for (const toml::node& entry : *list) add(*entry.as_table());
  }

  void add_secret(const toml::table& entry) {
    know(entry, {"name", "secret_sha256", "role", "nodes", "resources"});
    Principal who = principal(entry, text(entry, "name"));
    const std::string hex = text(entry, "secret_sha256");
    const std::optional<Digest> digest = parse_digest(hex);
    // What is there may be the secret itself, by mistake: it is not repeated.
    if (!digest)
      return fault(source(entry, "secret_sha256"), "'secret_sha256' must be 64 hexadecimal digits");
    for (const Credentials::Secret& other : made_->secrets_)
      if (other.digest == *digest)
        return fault(source(entry, "secret_sha256"),
                     fmt::format("'{}' has this secret already", other.who->name));
    who.proof = *digest;
    if (who.role == Role::client && who.nodes.empty()) who.nodes.push_back({who.name, false});
    made_->secrets_.push_back({*digest, std::make_shared<const Principal>(std::move(who))});
  }

  void add_certificate(const toml::table& entry) {
    know(entry, {"name", "role", "nodes", "resources"});
    const std::string name = text(entry, "name");
    made_->certificates_.push_back({NamePattern::of(name), principal(entry, name)});
  }

  void add_user(const toml::table& entry) {
    know(entry, {"user", "role", "nodes", "resources"});
    const std::string name = text(entry, "user");
    Principal who = principal(entry, name);
    const std::optional<uint32_t> uid = name.empty() ? std::nullopt : find_user_(name);
    if (!uid) return fault(source(entry, "user"), fmt::format("there is no user '{}' on this machine", name));
    who.proof = UnixUser{*uid};
    if (who.role == Role::client && who.nodes.empty()) who.nodes.push_back({who.name, false});
    made_->users_.push_back({*uid, std::make_shared<const Principal>(std::move(who))});
  }

  // What all three kinds have.
  Principal principal(const toml::table& entry, std::string name) {
    Principal who;
    who.name = std::move(name);
    const std::string role = text(entry, "role");
    if (role == "read")
      who.role = Role::read;
    else if (role == "admin")
      who.role = Role::admin;
    else if (role != "client")
      fault(source(entry, "role"), fmt::format("'{}' is no role; write client, read or admin", role));
    for (const std::string& node : list(entry, "nodes")) who.nodes.push_back(NamePattern::of(node));
    who.resources = list(entry, "resources");
    if (who.role != Role::client && entry.contains("nodes"))
      fault(source(entry, "nodes"),
            "only a client speaks for nodes; remove 'nodes', or write role = \"client\"");
    if (who.role == Role::admin && entry.contains("resources"))
      fault(source(entry, "resources"),
            "an admin may touch every resource; remove 'resources', or use another role");
    return who;
  }

  void know(const toml::table& entry, std::initializer_list<std::string_view> keys) {
    for (const auto& [key, node] : entry)
      if (std::find(keys.begin(), keys.end(), key.str()) == keys.end())
        fault(key.source(),
              fmt::format("'{}' is unknown here; there are {}", key.str(), fmt::join(keys, ", ")));
  }

  // A text that must be there.
  std::string text(const toml::table& entry, std::string_view key) {
    const toml::node* node = entry.get(key);
    if (node == nullptr) {
      fault(entry.source(), fmt::format("'{}' is missing", key));
      return {};
    }
    const std::string value = node->value_exact<std::string>().value_or("");
    if (value.empty()) fault(node->source(), fmt::format("'{}' must be a text that is not empty", key));
    return value;
  }

  // A list that may be missing. An empty one would be read as "none" by one and as "all" by the other.
  std::vector<std::string> list(const toml::table& entry, std::string_view key) {
    std::vector<std::string> texts;
    const toml::node* node = entry.get(key);
    if (node == nullptr) return texts;
    const toml::array* items = node->as_array();
    for (size_t i = 0; items != nullptr && i < items->size(); ++i)
      texts.push_back((*items)[i].value_exact<std::string>().value_or(""));
    if (texts.empty() || std::find(texts.begin(), texts.end(), "") != texts.end())
      fault(node->source(),
            fmt::format("'{}' must be a list of texts, none of them empty; leave it out for {}", key,
                        key == "nodes" ? "the own name" : "all"));
    return texts;
  }

  static toml::source_region source(const toml::table& entry, std::string_view key) {
    const toml::node* node = entry.get(key);
    return node == nullptr ? entry.source() : node->source();
  }

  // On one line, whatever stands in the file: TOML's texts and keys may have line ends in them.
  void fault(const toml::source_region& where, std::string what) {
    for (char& each : what)
      if (uint8_t(each) < ' ' || each == 0x7f) each = '?';
    if (fault_.empty()) fault_ = fmt::format("{}:{}: {}", path_, where.begin.line, what);
  }

  const std::string path_;
  const FindUser& find_user_;
  const std::shared_ptr<Credentials> made_ = std::make_shared<Credentials>();
  std::string fault_;
};

Result<CredentialsPtr> Credentials::parse(std::string_view text, const std::string& path,
                                          const FindUser& find_user) {
  return CredentialsReader(path, find_user).read(text);
}

Result<CredentialsPtr> Credentials::read(const std::string& path) {
  const std::optional<std::string> text = file_text(path);
  if (!text)
    return fail(fmt::format("{}: it cannot be read; it must be a file that this server may open", path));
  return parse(*text, path);
}

}  // namespace turnstile::access
