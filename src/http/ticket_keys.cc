#include "http/ticket_keys.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <memory>

namespace turnstile::http {
namespace {

// What OpenSSL's callback answers.
constexpr int kError = -1, kUnknown = 0, kUse = 1, kUseAndRenew = 2;

void forget(void*, void* keys, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<TicketKeys*>(keys); }

int place_in_context() {
  static const int place =
      CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, nullptr, nullptr, nullptr, &forget);
  return place;
}

bool authenticate_with(EVP_MAC_CTX* mac, TicketKeys::Key& key) {
  char digest[] = "sha256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac.data(), key.mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(mac, parameters) == 1;
}

int seal(TicketKeys& keys, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) {
  std::optional<TicketKeys::Key> key = keys.newest();
  if (!key || RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return kError;
  std::ranges::copy(key->name, name);
  const bool ready = EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key->cipher.data(), iv) == 1 &&
                     authenticate_with(mac, *key);
  return ready ? kUse : kError;
}

int open(TicketKeys& keys, const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
         EVP_MAC_CTX* mac) {
  std::optional<TicketKeys::Found> found = keys.find(std::span<const unsigned char, 16>(name, 16));
  if (!found) return kUnknown;
  const bool ready =
      EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, found->key.cipher.data(), iv) == 1 &&
      authenticate_with(mac, found->key);
  if (!ready) return kError;
  return found->seals ? kUse : kUseAndRenew;
}

int seal_or_open(SSL* session, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                 EVP_MAC_CTX* mac, int seals) {
  auto& keys = *static_cast<TicketKeys*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(session), place_in_context()));
  return seals ? seal(keys, name, iv, cipher, mac) : open(keys, name, iv, cipher, mac);
}

}  // namespace

TicketKeys::Key::~Key() {
  OPENSSL_cleanse(cipher.data(), cipher.size());
  OPENSSL_cleanse(mac.data(), mac.size());
}

bool TicketKeys::install(ssl_ctx_st* context, const TimeSource& source) {
  auto keys = std::make_unique<TicketKeys>(source);
  if (SSL_CTX_set_ex_data(context, place_in_context(), keys.get()) != 1) return false;
  static_cast<void>(keys.release());  // the context's
  return SSL_CTX_set_tlsext_ticket_key_evp_cb(context, &seal_or_open) == 1;
}

void TicketKeys::change_if_due(Time now) {
  if (before_ && now - before_->made >= 2 * kLife) before_.reset();
  if (newest_ && now - newest_->made < kLife) return;
  Key made{};
  made.made = now;
  if (RAND_bytes(made.name.data(), int(made.name.size())) != 1 ||
      RAND_bytes(made.cipher.data(), int(made.cipher.size())) != 1 ||
      RAND_bytes(made.mac.data(), int(made.mac.size())) != 1) {
    newest_.reset();
    return;
  }
  // One that has not been asked for since its time was over twice opens nothing.
  if (newest_ && now - newest_->made < 2 * kLife) before_ = newest_;
  newest_ = made;
}

std::optional<TicketKeys::Key> TicketKeys::newest() {
  Locked lock(mutex_);
  change_if_due(clock_.now());
  return newest_;
}

std::optional<TicketKeys::Found> TicketKeys::find(std::span<const unsigned char, 16> name) {
  Locked lock(mutex_);
  change_if_due(clock_.now());
  for (const auto* const key : {&newest_, &before_})
    if (*key && std::ranges::equal((*key)->name, name)) return Found{**key, key == &newest_};
  return {};
}

}  // namespace turnstile::http
