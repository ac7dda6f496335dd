#include <stdlib.h>
#include <string.h>

#include "peer.h"

static const char priorities[] =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"
    "-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:%DISABLE_TLS13_COMPAT_MODE";

stream *quic_peer_find(quic_peer *peer, int64_t id) {
  for (stream *s = peer->streams; s; s = s->next)
    if (s->id == id) return s;
  return NULL;
}

stream *quic_peer_find_or_add(quic_peer *peer, int64_t id) {
  stream *s = quic_peer_find(peer, id);
  if (s) return s;
  s = calloc(1, sizeof *s);
  s->id = id;
  s->next = peer->streams;
  peer->streams = s;
  return s;
}

static void free_stream(stream *s) {
  while (s->first) {
    chunk *next = s->first->next;
    free(s->first);
    s->first = next;
  }
  free(s->trailers);
  free(s);
}

static void remove_stream(quic_peer *peer, int64_t id) {
  for (stream **s = &peer->streams; *s; s = &(*s)->next) {
    if ((*s)->id != id) continue;
    stream *gone = *s;
    *s = gone->next;
    free_stream(gone);
    return;
  }
}

void quic_peer_tell(quic_peer *peer, int kind, int64_t id, uint64_t code) {
  peer->callback(peer->context, kind, id, code, NULL, 0, NULL, 0);
}

// MARK: QUIC

static int on_handshake(ngtcp2_conn *connection, void *user) {
  (void)connection;
  quic_peer *peer = user;
  if (!peer->options.plain && !peer->http && quic_peer_start_http(peer) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
  if (peer->options.tickets && gnutls_session_ticket_send(peer->tls, 1, 0) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
  quic_peer_tell(peer, QUIC_PEER_HANDSHAKE, 0, 0);
  return 0;
}

static int on_stream_data(
    ngtcp2_conn *connection, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *bytes, size_t count,
    void *user, void *data) {
  (void)offset, (void)data;
  quic_peer *peer = user;
  int is_end = (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0;
  if ((flags & NGTCP2_STREAM_DATA_FLAG_EARLY) && ngtcp2_is_bidi_stream(id)) quic_peer_tell(peer, QUIC_PEER_EARLY, id, 0);
  if (peer->options.plain) {
    if (ngtcp2_is_bidi_stream(id)) {
      if (count) peer->callback(peer->context, QUIC_PEER_DATA, id, 0, NULL, 0, bytes, count);
      if (is_end) quic_peer_tell(peer, QUIC_PEER_END, id, 0);
    }
    ngtcp2_conn_extend_max_offset(connection, count);
    (void)ngtcp2_conn_extend_max_stream_offset(connection, id, count);
    return 0;
  }
  if (!peer->http && quic_peer_start_http(peer) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
  nghttp3_ssize consumed = nghttp3_conn_read_stream(peer->http, id, bytes, count, is_end);
  if (consumed < 0) return NGTCP2_ERR_CALLBACK_FAILURE;
  ngtcp2_conn_extend_max_offset(connection, (uint64_t)consumed);
  (void)ngtcp2_conn_extend_max_stream_offset(connection, id, (uint64_t)consumed);
  return 0;
}

static int on_acked(ngtcp2_conn *connection, int64_t id, uint64_t offset, uint64_t count, void *user, void *data) {
  (void)connection, (void)offset, (void)data;
  quic_peer *peer = user;
  if (peer->http) (void)nghttp3_conn_add_ack_offset(peer->http, id, count);
  return 0;
}

static int on_stream_close(ngtcp2_conn *connection, uint32_t flags, int64_t id, uint64_t code, void *user, void *data) {
  (void)data;
  quic_peer *peer = user;
  if (!(flags & NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET)) code = NGHTTP3_H3_NO_ERROR;
  if (peer->http) (void)nghttp3_conn_close_stream(peer->http, id, code);
  remove_stream(peer, id);
  if (!peer->options.holds_streams && ngtcp2_is_bidi_stream(id)) ngtcp2_conn_extend_max_streams_bidi(connection, 1);
  quic_peer_tell(peer, QUIC_PEER_CLOSED, id, code);
  return 0;
}

static int on_reset(ngtcp2_conn *connection, int64_t id, uint64_t size, uint64_t code, void *user, void *data) {
  (void)connection, (void)size, (void)data;
  quic_peer *peer = user;
  if (peer->http) (void)nghttp3_conn_shutdown_stream_read(peer->http, id);
  quic_peer_tell(peer, QUIC_PEER_RESET, id, code);
  return 0;
}

static int on_window(ngtcp2_conn *connection, int64_t id, uint64_t maximum, void *user, void *data) {
  (void)connection, (void)maximum, (void)data;
  quic_peer *peer = user;
  if (peer->http) (void)nghttp3_conn_unblock_stream(peer->http, id);
  return 0;
}

// The peer that writes. libngtcp2 does not say whose packet is to be encrypted.
static _Thread_local quic_peer *writer;

// In place of the frames of a packet, the client gets HANDSHAKE_DONE (RFC 9000, section 19.20) and padding.
static int on_encrypt(
    uint8_t *bytes, const ngtcp2_crypto_aead *aead, const ngtcp2_crypto_aead_ctx *aead_context, const uint8_t *plain,
    size_t plain_count, const uint8_t *nonce, size_t nonce_count, const uint8_t *header, size_t header_count) {
  uint8_t frames[DATAGRAM] = {0x1e};
  int is_short = header_count > 0 && (header[0] & 0x80) == 0;
  if (is_short && plain_count <= sizeof frames && writer && !ngtcp2_conn_get_handshake_completed(writer->connection))
    plain = frames;
  return ngtcp2_crypto_encrypt_cb(
      bytes, aead, aead_context, plain, plain_count, nonce, nonce_count, header, header_count);
}

static ngtcp2_conn *get_connection(ngtcp2_crypto_conn_ref *reference) {
  return ((quic_peer *)reference->user_data)->connection;
}

void quic_peer_default_options(quic_peer_options *options) {
  memset(options, 0, sizeof *options);
  options->stream_window = 256 << 10;
  options->connection_window = 1 << 20;
  options->streams = 100;
  options->uni_streams = 3;
  options->idle_timeout = 30 * 1000000000ull;
}

// Takes every client for a new one.
static int on_replay_check(void *context, time_t expiry, const gnutls_datum_t *key, const gnutls_datum_t *data) {
  (void)context, (void)expiry, (void)key, (void)data;
  return 0;
}

quic_peer_identity *quic_peer_identity_new(const quic_peer_options *options) {
  quic_peer_identity *identity = calloc(1, sizeof *identity);
  gnutls_datum_t certificate = {(unsigned char *)options->certificate, (unsigned)strlen(options->certificate)};
  gnutls_datum_t key = {(unsigned char *)options->key, (unsigned)strlen(options->key)};
  int isBad = gnutls_certificate_allocate_credentials(&identity->credentials) != 0 ||
              gnutls_certificate_set_x509_key_mem(identity->credentials, &certificate, &key, GNUTLS_X509_FMT_PEM) < 0 ||
              gnutls_priority_init(&identity->priorities, priorities, NULL) != 0;
  if (!isBad && options->tickets) {
    isBad = gnutls_session_ticket_key_generate(&identity->ticket_key) != 0 ||
            gnutls_anti_replay_init(&identity->anti_replay) != 0;
    if (!isBad) gnutls_anti_replay_set_add_function(identity->anti_replay, on_replay_check);
  }
  if (!isBad && options->client_authority) {
    gnutls_datum_t authority = {
        (unsigned char *)options->client_authority, (unsigned)strlen(options->client_authority)};
    isBad = gnutls_certificate_set_x509_trust_mem(identity->credentials, &authority, GNUTLS_X509_FMT_PEM) < 1;
  }
  if (!isBad) return identity;
  quic_peer_identity_free(identity);
  return NULL;
}

void quic_peer_identity_free(quic_peer_identity *identity) {
  if (!identity) return;
  if (identity->credentials) gnutls_certificate_free_credentials(identity->credentials);
  if (identity->priorities) gnutls_priority_deinit(identity->priorities);
  if (identity->anti_replay) gnutls_anti_replay_deinit(identity->anti_replay);
  gnutls_free(identity->ticket_key.data);
  free(identity);
}

static int start_tls(quic_peer *peer, quic_peer_identity *identity) {
  const char *name = peer->options.protocol ? peer->options.protocol : "h3";
  unsigned flags = GNUTLS_SERVER | GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_NO_END_OF_EARLY_DATA;
  if (peer->options.tickets && !peer->options.rejects_early_data) flags |= GNUTLS_ENABLE_EARLY_DATA;
  if (gnutls_init(&peer->tls, flags) != 0) return -1;
  if (ngtcp2_crypto_gnutls_configure_server_session(peer->tls) != 0) return -1;
  if (gnutls_priority_set(peer->tls, identity->priorities) != 0) return -1;
  if (gnutls_credentials_set(peer->tls, GNUTLS_CRD_CERTIFICATE, identity->credentials) != 0) return -1;
  if (peer->options.tickets) {
    if (gnutls_session_ticket_enable_server(peer->tls, &identity->ticket_key) != 0) return -1;
    gnutls_anti_replay_enable(peer->tls, identity->anti_replay);
    // QUIC limits early data by flow control instead (RFC 9001, section 4.6.1).
    (void)gnutls_record_set_max_early_data_size(peer->tls, 0xffffffffu);
  }
  if (peer->options.client_authority) {
    gnutls_certificate_server_set_request(peer->tls, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert(peer->tls, NULL, 0);
  }
  peer->reference = (ngtcp2_crypto_conn_ref){get_connection, peer};
  gnutls_session_set_ptr(peer->tls, &peer->reference);
  return connect_gnutls_set_alpn(peer->tls, name, (unsigned)strlen(name));
}

static const uint8_t retry_secret[] = "a secret of the tests";

size_t quic_peer_retry(
    const uint8_t *datagram, size_t length, const void *remote_address, size_t remote_length, uint8_t *retry,
    size_t capacity, uint64_t now) {
  ngtcp2_pkt_hd header;
  if (ngtcp2_accept(&header, datagram, length) != 0 || header.token.len > 0) return 0;
  ngtcp2_cid id;
  uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN];
  if (connect_ngtcp2_random_id(&id, 18) != 0) return 0;
  ngtcp2_ssize count = ngtcp2_crypto_generate_retry_token(
      token, retry_secret, sizeof retry_secret, header.version, remote_address, (ngtcp2_socklen)remote_length, &id,
      &header.dcid, now);
  if (count < 0) return 0;
  count = ngtcp2_crypto_write_retry(
      retry, capacity, header.version, &header.scid, &id, &header.dcid, token, (size_t)count);
  return count > 0 ? (size_t)count : 0;
}

quic_peer *quic_peer_accept(
    quic_peer_identity *identity, const quic_peer_options *options, const uint8_t *datagram, size_t length,
    const void *local_address, size_t local_length, const void *remote_address, size_t remote_length,
    quic_peer_callback callback, void *context, uint64_t now) {
  ngtcp2_pkt_hd header;
  if (ngtcp2_accept(&header, datagram, length) != 0) return NULL;
  quic_peer *peer = calloc(1, sizeof *peer);
  peer->options = *options;
  peer->callback = callback;
  peer->context = context;
  ngtcp2_path_storage_init(
      &peer->path, local_address, (ngtcp2_socklen)local_length, remote_address, (ngtcp2_socklen)remote_length, NULL);

  ngtcp2_callbacks callbacks;
  connect_ngtcp2_server_callbacks(&callbacks);
  callbacks.handshake_completed = on_handshake;
  callbacks.recv_stream_data = on_stream_data;
  callbacks.acked_stream_data_offset = on_acked;
  callbacks.stream_close = on_stream_close;
  callbacks.stream_reset = on_reset;
  callbacks.extend_max_stream_data = on_window;
  if (options->confirms_early) callbacks.encrypt = on_encrypt;

  ngtcp2_settings settings;
  connect_ngtcp2_settings_default(&settings);
  settings.initial_ts = now;
  settings.max_tx_udp_payload_size = DATAGRAM;
  settings.cc_algo = NGTCP2_CC_ALGO_CUBIC;

  ngtcp2_transport_params params;
  connect_ngtcp2_params_default(&params);
  params.initial_max_stream_data_bidi_remote = options->stream_window;
  params.initial_max_stream_data_uni = 256 << 10;
  params.initial_max_data = options->connection_window;
  params.initial_max_streams_bidi = options->streams;
  params.initial_max_streams_uni = options->uni_streams;
  params.max_idle_timeout = options->idle_timeout;
  params.original_dcid = header.dcid;
  if (header.token.len > 0) {
    // The same clock's time, so any timeout will do.
    if (ngtcp2_crypto_verify_retry_token(
            &params.original_dcid, header.token.base, header.token.len, retry_secret, sizeof retry_secret, header.version,
            remote_address, (ngtcp2_socklen)remote_length, &header.dcid, 10 * NGTCP2_SECONDS, now) != 0) {
      free(peer);
      return NULL;
    }
    params.retry_scid = header.dcid;
    params.retry_scid_present = 1;
  }
#if CONNECT_NGTCP2_V1
  params.original_dcid_present = 1;
#endif
  params.stateless_reset_token_present = 1;
  gnutls_rnd(GNUTLS_RND_NONCE, params.stateless_reset_token, sizeof params.stateless_reset_token);
  memcpy(peer->reset_token, params.stateless_reset_token, sizeof peer->reset_token);

  ngtcp2_cid id;
  if (connect_ngtcp2_random_id(&id, 18) != 0 || start_tls(peer, identity) != 0 ||
      connect_ngtcp2_server_new(
          &peer->connection, &header.scid, &id, &peer->path.path, header.version, &callbacks, &settings, &params,
          peer) != 0) {
    quic_peer_free(peer);
    return NULL;
  }
  ngtcp2_conn_set_tls_native_handle(peer->connection, peer->tls);
  return peer;
}

void quic_peer_free(quic_peer *peer) {
  if (!peer) return;
  if (peer->http) nghttp3_conn_del(peer->http);
  if (peer->connection) ngtcp2_conn_del(peer->connection);
  if (peer->tls) gnutls_deinit(peer->tls);
  while (peer->streams) {
    stream *next = peer->streams->next;
    free_stream(peer->streams);
    peer->streams = next;
  }
  free(peer);
}

int quic_peer_read(quic_peer *peer, const uint8_t *datagram, size_t length, uint64_t now) {
  int result = connect_ngtcp2_read(peer->connection, &peer->path.path, 0, datagram, length, now);
  // With the streams of HTTP, there is something to send besides the handshake.
  if (result == 0 && peer->options.confirms_early && !peer->http &&
      ngtcp2_conn_get_remote_transport_params(peer->connection) && quic_peer_start_http(peer) != 0)
    return NGTCP2_ERR_CALLBACK_FAILURE;
  return result;
}

// The next raw bytes of a peer without HTTP.
static stream *next_raw(quic_peer *peer) {
  for (stream *s = peer->streams; s; s = s->next)
    if (s->unsent || s->is_raw_end == 1) return s;
  return NULL;
}

size_t quic_peer_write(quic_peer *peer, uint8_t *datagram, size_t capacity, uint64_t now) {
  for (;;) {
    int64_t id = -1;
    int is_end = 0;
    nghttp3_vec pieces[MAXIMUM_PIECES] = {{0}};
    nghttp3_ssize count = 0;
    stream *raw = NULL;
    if (peer->http && ngtcp2_conn_get_max_data_left(peer->connection)) {
      count = nghttp3_conn_writev_stream(peer->http, &id, &is_end, pieces, MAXIMUM_PIECES);
      if (count < 0) return 0;
    } else if (peer->options.plain && (raw = next_raw(peer))) {
      id = raw->id;
      if (raw->unsent) {
        // `acknowledged` counts what was sent here.
        pieces[0] = (nghttp3_vec){
            raw->unsent->bytes + raw->unsent->acknowledged, raw->unsent->length - raw->unsent->acknowledged};
        count = 1;
        is_end = raw->is_raw_end == 1 && !raw->unsent->next;
      } else {
        is_end = 1;
      }
    }
    ngtcp2_ssize taken = -1;
    uint32_t ecn = 0;
    uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (is_end ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0);
    writer = peer;
    ngtcp2_ssize written = connect_ngtcp2_write(
        peer->connection, &ecn, datagram, capacity < DATAGRAM ? capacity : DATAGRAM, &taken, flags, id,
        (ngtcp2_vec *)pieces, (size_t)count, now);
    writer = NULL;
    if (written == NGTCP2_ERR_STREAM_DATA_BLOCKED && peer->http) {
      nghttp3_conn_block_stream(peer->http, id);
      continue;
    }
    if ((written == NGTCP2_ERR_STREAM_SHUT_WR || written == NGTCP2_ERR_STREAM_NOT_FOUND) && peer->http) {
      nghttp3_conn_shutdown_stream_write(peer->http, id);
      continue;
    }
    if (written < 0 && written != NGTCP2_ERR_WRITE_MORE) {
      if (raw) raw->unsent = NULL, raw->is_raw_end = 2;
      if (raw) continue;
      return 0;
    }
    if (taken >= 0 && peer->http) (void)nghttp3_conn_add_write_offset(peer->http, id, (size_t)taken);
    if (taken >= 0 && raw) {
      if (raw->unsent) {
        raw->unsent->acknowledged += (size_t)taken;
        if (raw->unsent->acknowledged == raw->unsent->length) raw->unsent = raw->unsent->next;
      }
      if (is_end && !raw->unsent) raw->is_raw_end = 2;
    }
    if (written == NGTCP2_ERR_WRITE_MORE) continue;
    return (size_t)written;
  }
}

uint64_t quic_peer_expiry(quic_peer *peer) { return ngtcp2_conn_get_expiry(peer->connection); }
int quic_peer_expire(quic_peer *peer, uint64_t now) { return ngtcp2_conn_handle_expiry(peer->connection, now); }
