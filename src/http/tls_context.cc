#include "http/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "http/certificate_names.h"
#include "http/ticket_keys.h"
#include "http/tls_session.h"

namespace turnstile::http {
namespace {

// Of TLS 1.2; all of 1.3 are good. With a key that both sides have agreed on for this session only, and with
// encryption that is authentication, too. The cheapest first: none of them is known to be weak.
constexpr const char* kCiphers =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kGroups = "X25519:P-256:P-384";
constexpr uint64_t kOptions = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                              SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                              // Who goes without a word has gone: requests say themselves where they end.
                              SSL_OP_IGNORE_UNEXPECTED_EOF;
// Buffers are kept only while there is something in them: ten thousand idle connections are the usual case.
// Output that the kernel has no room for may lie elsewhere, and be longer, when it is tried again.
constexpr long kModes =
    SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
constexpr long kTicketSeconds = std::chrono::duration_cast<std::chrono::seconds>(TicketKeys::kLife).count();
constexpr std::string_view kProtocol = "http/1.1";

// OpenSSL's reasons read like "no start line"; of a file that cannot be opened it says less than the system
// does.
std::unexpected<Error> cannot_use(const std::string& file, std::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  if (::access(file.c_str(), R_OK) != 0) reason = std::strerror(errno);
  return fail(fmt::format("Cannot use {} as {}: {}.", file, what, reason ? reason : "unknown error"));
}

// A key with a pass phrase is an error: nobody is there to type it.
int no_pass_phrase(char*, int, int, void*) { return -1; }

// What we speak is chosen if the client offers it; one that offers only other protocols is refused, and one
// that offers none is taken at its word.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  for (unsigned int at = 0; at < offered_size; at += 1u + offered[at]) {
    const std::string_view name(reinterpret_cast<const char*>(offered) + at + 1, offered[at]);
    if (name != kProtocol) continue;
    *out = offered + at + 1;
    *size = offered[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

void warn_of_a_key_that_others_can_read(const std::string& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0)
    log_warning("everybody on this machine can read the TLS key", {{"file", file}});
}

bool set_policy(SSL_CTX* context, const TimeSource& source) {
  SSL_CTX_set_options(context, kOptions);
  SSL_CTX_set_mode(context, kModes);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_timeout(context, kTicketSeconds);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_alpn_select_cb(context, &choose_protocol, nullptr);
  SSL_CTX_set_default_passwd_cb(context, &no_pass_phrase);
  // A session may be resumed only where it was made: by this server, since it has read these files.
  std::array<unsigned char, 16> name{};
  return RAND_bytes(name.data(), int(name.size())) == 1 && TicketKeys::install(context, source) &&
         SSL_CTX_set_session_id_context(context, name.data(), unsigned(name.size())) == 1 &&
         SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(context, kCiphers) == 1 && SSL_CTX_set_ciphersuites(context, kSuites) == 1 &&
         SSL_CTX_set1_groups_list(context, kGroups) == 1;
}

Result<void> ask_for_certificates(SSL_CTX* context, const std::string& file) {
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(file.c_str());
  if (!names) return cannot_use(file, "the CA of clients");
  SSL_CTX_set_client_CA_list(context, names);  // takes them
  if (SSL_CTX_load_verify_file(context, file.c_str()) != 1) return cannot_use(file, "the CA of clients");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // without a certificate: credentials decide
  return {};
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

TlsContext::TlsContext(TlsFiles files, const TimeSource& source)
    : files_(std::move(files)), source_(source) {}
TlsContext::~TlsContext() = default;

Result<TlsContext::Handle> TlsContext::read() const {
  const TlsFiles& files = files_;
  ERR_clear_error();
  Handle context(SSL_CTX_new(TLS_server_method()));
  TS_CHECK(context && set_policy(context.get(), source_), "OpenSSL knows what we want of it");
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1)
    return cannot_use(files.certificate, "the certificate");
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return cannot_use(files.key, "the key of " + files.certificate);
  warn_of_a_key_that_others_can_read(files.key);
  if (!files.client_ca.empty())
    if (Result<void> asked = ask_for_certificates(context.get(), files.client_ca); !asked)
      return std::unexpected(asked.error());
  ERR_clear_error();
  return context;
}

Result<std::unique_ptr<TlsContext>> TlsContext::load(TlsFiles files, const TimeSource& source) {
  std::unique_ptr<TlsContext> context(new TlsContext(std::move(files), source));
  if (Result<void> loaded = context->reload(); !loaded) return std::unexpected(loaded.error());
  return context;
}

Result<void> TlsContext::reload() {
  Result<Handle> context = read();
  if (!context) return std::unexpected(context.error());
  Locked lock(mutex_);
  newest_.swap(*context);
  return {};
}

std::vector<std::string> TlsContext::names() const {
  Locked lock(mutex_);
  return dns_names(SSL_CTX_get0_certificate(newest_.get()));
}

ssl_st* TlsContext::new_session() const {
  Locked lock(mutex_);
  return SSL_new(newest_.get());
}

}  // namespace turnstile::http
