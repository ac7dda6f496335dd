#ifndef CONNECT_CNGTCP2_SHIM_H
#define CONNECT_CNGTCP2_SHIM_H

#if !__has_include(<ngtcp2/ngtcp2.h>) || !__has_include(<ngtcp2/ngtcp2_crypto_gnutls.h>)
#error "libngtcp2 is missing; on Debian: apt-get install libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev"
#else

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <string.h>

// What differs between versions of ngtcp2, or is a macro or variadic and so invisible to Swift. Version 1.0 has renamed much
// of 0.12, which Debian 12 has.
#define CONNECT_NGTCP2_V1 (NGTCP2_VERSION_NUM >= 0x010000)

// MARK: Construction

static inline void connect_ngtcp2_rand(uint8_t *bytes, size_t count, const ngtcp2_rand_ctx *context) {
  (void)context;
  (void)gnutls_rnd(GNUTLS_RND_NONCE, bytes, count);
}

static inline int connect_ngtcp2_new_connection_id(
    ngtcp2_conn *connection, ngtcp2_cid *id, uint8_t *token, size_t length, void *user_data) {
  (void)connection;
  (void)user_data;
  if (gnutls_rnd(GNUTLS_RND_NONCE, id->data, length) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
  id->datalen = length;
  if (gnutls_rnd(GNUTLS_RND_KEY, token, NGTCP2_STATELESS_RESET_TOKENLEN) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
  return 0;
}

// A connection identifier of `length` bytes, at most 20.
static inline int connect_ngtcp2_random_id(ngtcp2_cid *id, size_t length) {
  if (length > NGTCP2_MAX_CIDLEN) return -1;
  id->datalen = length;
  return gnutls_rnd(GNUTLS_RND_NONCE, id->data, length);
}

static inline void connect_ngtcp2_crypto_callbacks(ngtcp2_callbacks *callbacks) {
  memset(callbacks, 0, sizeof *callbacks);
  callbacks->recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb;
  callbacks->encrypt = ngtcp2_crypto_encrypt_cb;
  callbacks->decrypt = ngtcp2_crypto_decrypt_cb;
  callbacks->hp_mask = ngtcp2_crypto_hp_mask_cb;
  callbacks->update_key = ngtcp2_crypto_update_key_cb;
  callbacks->delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb;
  callbacks->delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb;
  callbacks->get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb;
  callbacks->version_negotiation = ngtcp2_crypto_version_negotiation_cb;
  callbacks->rand = connect_ngtcp2_rand;
  callbacks->get_new_connection_id = connect_ngtcp2_new_connection_id;
}

#if CONNECT_NGTCP2_V1
typedef ngtcp2_encryption_level connect_ngtcp2_level;
#else
typedef ngtcp2_crypto_level connect_ngtcp2_level;
#endif

// Once TLS has done its part, a server has nothing to say to it but session tickets, which are then ignored.
static inline int connect_ngtcp2_recv_crypto_data(
    ngtcp2_conn *connection, connect_ngtcp2_level level, uint64_t offset, const uint8_t *bytes, size_t count,
    void *user_data) {
  if (!ngtcp2_conn_get_tls_native_handle(connection)) return 0;
  return ngtcp2_crypto_recv_crypto_data_cb(connection, level, offset, bytes, count, user_data);
}

// Lets TLS go on that has stopped to wait for a decision about the server's certificates.
static inline int connect_ngtcp2_continue_handshake(ngtcp2_conn *connection) {
#if CONNECT_NGTCP2_V1
  connect_ngtcp2_level level = NGTCP2_ENCRYPTION_LEVEL_HANDSHAKE;
#else
  connect_ngtcp2_level level = NGTCP2_CRYPTO_LEVEL_HANDSHAKE;
#endif
  if (ngtcp2_crypto_read_write_crypto_data(connection, level, NULL, 0) == 0) return 0;
  int error = ngtcp2_conn_get_tls_error(connection);
  return error ? error : NGTCP2_ERR_CRYPTO;
}

// The callbacks that are the same for all clients; the others are null.
static inline void connect_ngtcp2_client_callbacks(ngtcp2_callbacks *callbacks) {
  connect_ngtcp2_crypto_callbacks(callbacks);
  callbacks->recv_crypto_data = connect_ngtcp2_recv_crypto_data;
  callbacks->client_initial = ngtcp2_crypto_client_initial_cb;
  callbacks->recv_retry = ngtcp2_crypto_recv_retry_cb;
}

static inline void connect_ngtcp2_server_callbacks(ngtcp2_callbacks *callbacks) {
  connect_ngtcp2_crypto_callbacks(callbacks);
  callbacks->recv_client_initial = ngtcp2_crypto_recv_client_initial_cb;
}

static inline void connect_ngtcp2_settings_default(ngtcp2_settings *settings) { ngtcp2_settings_default(settings); }

static inline void connect_ngtcp2_params_default(ngtcp2_transport_params *params) {
  ngtcp2_transport_params_default(params);
}

static inline int connect_ngtcp2_client_new(
    ngtcp2_conn **connection, const ngtcp2_cid *destination, const ngtcp2_cid *source, const ngtcp2_path *path,
    const ngtcp2_callbacks *callbacks, const ngtcp2_settings *settings, const ngtcp2_transport_params *params,
    void *user_data) {
  return ngtcp2_conn_client_new(
      connection, destination, source, path, NGTCP2_PROTO_VER_V1, callbacks, settings, params, NULL, user_data);
}

static inline int connect_ngtcp2_server_new(
    ngtcp2_conn **connection, const ngtcp2_cid *destination, const ngtcp2_cid *source, const ngtcp2_path *path,
    uint32_t version, const ngtcp2_callbacks *callbacks, const ngtcp2_settings *settings,
    const ngtcp2_transport_params *params, void *user_data) {
  return ngtcp2_conn_server_new(
      connection, destination, source, path, version, callbacks, settings, params, NULL, user_data);
}

// MARK: Early data

// What a client has to remember of the server's transport parameters (RFC 9000, section 7.4.1). Only the same version of
// libngtcp2 understands the bytes. Returns their number, or a negative error.
static inline ngtcp2_ssize connect_ngtcp2_get_early_params(ngtcp2_conn *connection, uint8_t *bytes, size_t capacity) {
#if CONNECT_NGTCP2_V1
  return ngtcp2_conn_encode_0rtt_transport_params(connection, bytes, capacity);
#else
  const ngtcp2_transport_params *remote = ngtcp2_conn_get_remote_transport_params(connection);
  ngtcp2_transport_params params;
  if (remote == NULL || capacity < sizeof params) return NGTCP2_ERR_INVALID_ARGUMENT;
  params = *remote;
  // The only part that has pointers.
  memset(&params.version_info, 0, sizeof params.version_info);
  params.version_info_present = 0;
  memcpy(bytes, &params, sizeof params);
  return (ngtcp2_ssize)sizeof params;
#endif
}

// Lets streams be opened before the handshake, within what connect_ngtcp2_get_early_params has returned. Returns 0, or a
// negative error.
static inline int connect_ngtcp2_set_early_params(ngtcp2_conn *connection, const uint8_t *bytes, size_t count) {
#if CONNECT_NGTCP2_V1
  return ngtcp2_conn_decode_and_set_0rtt_transport_params(connection, bytes, count);
#else
  ngtcp2_transport_params params;
  if (count != sizeof params) return NGTCP2_ERR_INVALID_ARGUMENT;
  memcpy(&params, bytes, sizeof params);
  ngtcp2_conn_set_early_remote_transport_params(connection, &params);
  return 0;
#endif
}

// Whether keys of this level are for early data.
static inline int connect_ngtcp2_is_early(connect_ngtcp2_level level) {
#if CONNECT_NGTCP2_V1
  return level == NGTCP2_ENCRYPTION_LEVEL_0RTT;
#else
  return level == NGTCP2_CRYPTO_LEVEL_EARLY;
#endif
}

// Whether keys of this level are for all that follows the handshake.
static inline int connect_ngtcp2_is_application(connect_ngtcp2_level level) {
#if CONNECT_NGTCP2_V1
  return level == NGTCP2_ENCRYPTION_LEVEL_1RTT;
#else
  return level == NGTCP2_CRYPTO_LEVEL_APPLICATION;
#endif
}

// The server has not taken early data: forgets all streams.
static inline int connect_ngtcp2_reject_early_data(ngtcp2_conn *connection) {
#if CONNECT_NGTCP2_V1
  return ngtcp2_conn_tls_early_data_rejected(connection);
#else
  return ngtcp2_conn_early_data_rejected(connection);
#endif
}

// MARK: Packets

static inline int connect_ngtcp2_read(
    ngtcp2_conn *connection, const ngtcp2_path *path, uint32_t ecn, const uint8_t *bytes, size_t count,
    ngtcp2_tstamp now) {
  ngtcp2_pkt_info info = {0};
  info.ecn = ecn;
  return ngtcp2_conn_read_pkt(connection, path, &info, bytes, count, now);
}

// `stream` is -1 for none; then nothing is taken from `pieces`.
static inline ngtcp2_ssize connect_ngtcp2_write(
    ngtcp2_conn *connection, uint32_t *ecn, uint8_t *bytes, size_t capacity, ngtcp2_ssize *taken, uint32_t flags,
    int64_t stream, const ngtcp2_vec *pieces, size_t count, ngtcp2_tstamp now) {
  ngtcp2_pkt_info info = {0};
  ngtcp2_ssize written =
      ngtcp2_conn_writev_stream(connection, NULL, &info, bytes, capacity, taken, flags, stream, pieces, count, now);
  *ecn = info.ecn;
  return written;
}

// MARK: Streams

static inline int connect_ngtcp2_shutdown_stream(ngtcp2_conn *connection, int64_t stream, uint64_t error_code) {
#if CONNECT_NGTCP2_V1
  return ngtcp2_conn_shutdown_stream(connection, 0, stream, error_code);
#else
  return ngtcp2_conn_shutdown_stream(connection, stream, error_code);
#endif
}

static inline int connect_ngtcp2_shutdown_stream_write(ngtcp2_conn *connection, int64_t stream, uint64_t error_code) {
#if CONNECT_NGTCP2_V1
  return ngtcp2_conn_shutdown_stream_write(connection, 0, stream, error_code);
#else
  return ngtcp2_conn_shutdown_stream_write(connection, stream, error_code);
#endif
}

static inline int connect_ngtcp2_shutdown_stream_read(ngtcp2_conn *connection, int64_t stream, uint64_t error_code) {
#if CONNECT_NGTCP2_V1
  return ngtcp2_conn_shutdown_stream_read(connection, 0, stream, error_code);
#else
  return ngtcp2_conn_shutdown_stream_read(connection, stream, error_code);
#endif
}

// MARK: The end

enum connect_ngtcp2_close_kind {
  CONNECT_NGTCP2_CLOSE_TRANSPORT = 0,
  CONNECT_NGTCP2_CLOSE_APPLICATION = 1,
  CONNECT_NGTCP2_CLOSE_OTHER = 2,
};

// The content of a CONNECTION_CLOSE frame (RFC 9000, section 19.19). The reason belongs to the connection.
typedef struct connect_ngtcp2_close {
  uint32_t kind;
  uint64_t error_code;
  const uint8_t *reason;
  size_t reason_length;
} connect_ngtcp2_close;

// What the peer has closed the connection with.
static inline connect_ngtcp2_close connect_ngtcp2_get_close(ngtcp2_conn *connection) {
  connect_ngtcp2_close result = {CONNECT_NGTCP2_CLOSE_OTHER, 0, NULL, 0};
#if CONNECT_NGTCP2_V1
  const ngtcp2_ccerr *error = ngtcp2_conn_get_ccerr(connection);
  if (error->type == NGTCP2_CCERR_TYPE_TRANSPORT) result.kind = CONNECT_NGTCP2_CLOSE_TRANSPORT;
  if (error->type == NGTCP2_CCERR_TYPE_APPLICATION) result.kind = CONNECT_NGTCP2_CLOSE_APPLICATION;
  result.error_code = error->error_code;
  result.reason = error->reason;
  result.reason_length = error->reasonlen;
#else
  ngtcp2_connection_close_error error;
  ngtcp2_conn_get_connection_close_error(connection, &error);
  if (error.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_TRANSPORT) result.kind = CONNECT_NGTCP2_CLOSE_TRANSPORT;
  if (error.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION) result.kind = CONNECT_NGTCP2_CLOSE_APPLICATION;
  result.error_code = error.error_code;
  result.reason = error.reason;
  result.reason_length = error.reasonlen;
#endif
  return result;
}

// Writes the packet that closes the connection: with `library_error` if that is not 0, else with the TLS alert if it is not
// negative, else with `application_error` of HTTP/3.
static inline ngtcp2_ssize connect_ngtcp2_write_close(
    ngtcp2_conn *connection, uint8_t *bytes, size_t capacity, int library_error, int alert, uint64_t application_error,
    ngtcp2_tstamp now) {
  ngtcp2_pkt_info info = {0};
#if CONNECT_NGTCP2_V1
  ngtcp2_ccerr error;
  ngtcp2_ccerr_default(&error);
  if (alert >= 0) {
    ngtcp2_ccerr_set_tls_alert(&error, (uint8_t)alert, NULL, 0);
  } else if (library_error != 0) {
    ngtcp2_ccerr_set_liberr(&error, library_error, NULL, 0);
  } else {
    ngtcp2_ccerr_set_application_error(&error, application_error, NULL, 0);
  }
#else
  ngtcp2_connection_close_error error;
  ngtcp2_connection_close_error_default(&error);
  if (alert >= 0) {
    ngtcp2_connection_close_error_set_transport_error_tls_alert(&error, (uint8_t)alert, NULL, 0);
  } else if (library_error != 0) {
    ngtcp2_connection_close_error_set_transport_error_liberr(&error, library_error, NULL, 0);
  } else {
    ngtcp2_connection_close_error_set_application_error(&error, application_error, NULL, 0);
  }
#endif
  return ngtcp2_conn_write_connection_close(connection, NULL, &info, bytes, capacity, &error, now);
}

static inline int connect_ngtcp2_is_closing(ngtcp2_conn *connection) {
#if CONNECT_NGTCP2_V1
  return ngtcp2_conn_in_closing_period(connection);
#else
  return ngtcp2_conn_is_in_closing_period(connection);
#endif
}

static inline int connect_ngtcp2_is_draining(ngtcp2_conn *connection) {
#if CONNECT_NGTCP2_V1
  return ngtcp2_conn_in_draining_period(connection);
#else
  return ngtcp2_conn_is_in_draining_period(connection);
#endif
}

// MARK: Facts

typedef struct connect_ngtcp2_facts {
  uint64_t smoothed_round_trip;
  uint64_t latest_round_trip;
  uint64_t bytes_in_flight;
  uint64_t congestion_window;
} connect_ngtcp2_facts;

static inline connect_ngtcp2_facts connect_ngtcp2_get_facts(ngtcp2_conn *connection) {
#if CONNECT_NGTCP2_V1
  ngtcp2_conn_info stat;
  ngtcp2_conn_get_conn_info(connection, &stat);
#else
  ngtcp2_conn_stat stat;
  ngtcp2_conn_get_conn_stat(connection, &stat);
#endif
  return (connect_ngtcp2_facts){stat.smoothed_rtt, stat.latest_rtt, stat.bytes_in_flight, stat.cwnd};
}

// The peer's transport parameters; zeros before they have come.
typedef struct connect_ngtcp2_remote {
  uint64_t max_streams_bidi;
  uint64_t max_idle_timeout;
} connect_ngtcp2_remote;

static inline connect_ngtcp2_remote connect_ngtcp2_get_remote(ngtcp2_conn *connection) {
  const ngtcp2_transport_params *params = ngtcp2_conn_get_remote_transport_params(connection);
  if (params == NULL) return (connect_ngtcp2_remote){0, 0};
  return (connect_ngtcp2_remote){params->initial_max_streams_bidi, params->max_idle_timeout};
}

#endif
#endif
