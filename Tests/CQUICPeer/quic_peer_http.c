#include <stdlib.h>
#include <string.h>

#include "peer.h"

static void tell_field(quic_peer *peer, int kind, int64_t id, nghttp3_rcbuf *name, nghttp3_rcbuf *value) {
  nghttp3_vec n = nghttp3_rcbuf_get_buf(name), v = nghttp3_rcbuf_get_buf(value);
  peer->callback(peer->context, kind, id, 0, n.base, n.len, v.base, v.len);
}

static int on_acknowledged(nghttp3_conn *http, int64_t id, uint64_t count, void *user, void *data) {
  (void)http, (void)data;
  stream *s = quic_peer_find(user, id);
  while (s && s->first && count > 0) {
    chunk *c = s->first;
    size_t left = c->length - c->acknowledged;
    if (count < left) {
      c->acknowledged += count;
      return 0;
    }
    count -= left;
    s->first = c->next;
    if (s->last == c) s->last = NULL;
    free(c);
  }
  return 0;
}

static int on_data(nghttp3_conn *http, int64_t id, const uint8_t *bytes, size_t count, void *user, void *data) {
  (void)http, (void)data;
  quic_peer *peer = user;
  peer->callback(peer->context, QUIC_PEER_DATA, id, 0, NULL, 0, bytes, count);
  if (!peer->options.holds_windows) quic_peer_extend(peer, id, count);
  return 0;
}

static int on_deferred(nghttp3_conn *http, int64_t id, size_t count, void *user, void *data) {
  (void)http, (void)data;
  quic_peer_extend(user, id, count);
  return 0;
}

static int on_header(
    nghttp3_conn *http, int64_t id, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value, uint8_t flags, void *user,
    void *data) {
  (void)http, (void)token, (void)flags, (void)data;
  tell_field(user, QUIC_PEER_HEADER, id, name, value);
  return 0;
}

static int on_headers(nghttp3_conn *http, int64_t id, int end, void *user, void *data) {
  (void)http, (void)end, (void)data;
  quic_peer_find_or_add(user, id);
  quic_peer_tell(user, QUIC_PEER_HEADERS, id, 0);
  return 0;
}

static int on_trailer(
    nghttp3_conn *http, int64_t id, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value, uint8_t flags, void *user,
    void *data) {
  (void)http, (void)token, (void)flags, (void)data;
  tell_field(user, QUIC_PEER_TRAILER, id, name, value);
  return 0;
}

static int on_end(nghttp3_conn *http, int64_t id, void *user, void *data) {
  (void)http, (void)data;
  quic_peer_tell(user, QUIC_PEER_END, id, 0);
  return 0;
}

static int on_stop_sending(nghttp3_conn *http, int64_t id, uint64_t code, void *user, void *data) {
  (void)http, (void)data;
  return connect_ngtcp2_shutdown_stream_read(((quic_peer *)user)->connection, id, code);
}

static int on_reset_stream(nghttp3_conn *http, int64_t id, uint64_t code, void *user, void *data) {
  (void)http, (void)data;
  return connect_ngtcp2_shutdown_stream_write(((quic_peer *)user)->connection, id, code);
}

static size_t parse_fields(const char *text, nghttp3_nv *fields, size_t count) {
  for (; text && *text && count < MAXIMUM_FIELDS; count++) {
    size_t name = strlen(text);
    const char *value = text + name + 1;
    fields[count] = (nghttp3_nv){(uint8_t *)text, (uint8_t *)value, name, strlen(value), NGHTTP3_NV_FLAG_NONE};
    text = value + strlen(value) + 1;
  }
  return count;
}

static nghttp3_ssize read_body(
    nghttp3_conn *http, int64_t id, nghttp3_vec *pieces, size_t capacity, uint32_t *flags, void *user, void *data) {
  (void)data;
  stream *s = quic_peer_find(user, id);
  if (!s) return NGHTTP3_ERR_CALLBACK_FAILURE;
  size_t count = 0;
  for (; s->unsent && count < capacity; s->unsent = s->unsent->next)
    pieces[count++] = (nghttp3_vec){s->unsent->bytes, s->unsent->length};
  if (s->unsent) return (nghttp3_ssize)count;
  if (!s->is_finished) return count ? (nghttp3_ssize)count : NGHTTP3_ERR_WOULDBLOCK;
  *flags |= NGHTTP3_DATA_FLAG_EOF;
  if (s->trailers) {
    nghttp3_nv fields[MAXIMUM_FIELDS];
    size_t fields_count = parse_fields(s->trailers, fields, 0);
    *flags |= NGHTTP3_DATA_FLAG_NO_END_STREAM;
    if (nghttp3_conn_submit_trailers(http, id, fields, fields_count) != 0) return NGHTTP3_ERR_CALLBACK_FAILURE;
  }
  return (nghttp3_ssize)count;
}

int quic_peer_start_http(quic_peer *peer) {
  nghttp3_callbacks callbacks = {0};
  callbacks.acked_stream_data = on_acknowledged;
  callbacks.recv_data = on_data;
  callbacks.deferred_consume = on_deferred;
  callbacks.recv_header = on_header;
  callbacks.end_headers = on_headers;
  callbacks.recv_trailer = on_trailer;
  callbacks.end_stream = on_end;
  callbacks.stop_sending = on_stop_sending;
  callbacks.reset_stream = on_reset_stream;
  nghttp3_settings settings;
  connect_nghttp3_settings_default(&settings);
  settings.qpack_max_dtable_capacity = 4096;
  settings.qpack_blocked_streams = 100;
  int64_t control, encoder, decoder;
  if (connect_nghttp3_server_new(&peer->http, &callbacks, &settings, peer) != 0) return -1;
  nghttp3_conn_set_max_client_streams_bidi(peer->http, peer->options.streams);
  if (ngtcp2_conn_open_uni_stream(peer->connection, &control, NULL) != 0) return -1;
  if (ngtcp2_conn_open_uni_stream(peer->connection, &encoder, NULL) != 0) return -1;
  if (ngtcp2_conn_open_uni_stream(peer->connection, &decoder, NULL) != 0) return -1;
  if (nghttp3_conn_bind_control_stream(peer->http, control) != 0) return -1;
  return nghttp3_conn_bind_qpack_streams(peer->http, encoder, decoder);
}

// MARK: Answers

int quic_peer_respond(quic_peer *peer, int64_t id, const char *status, const char *headers, int is_end) {
  nghttp3_nv fields[MAXIMUM_FIELDS];
  fields[0] = (nghttp3_nv){(uint8_t *)":status", (uint8_t *)status, 7, strlen(status), NGHTTP3_NV_FLAG_NONE};
  size_t count = parse_fields(headers, fields, 1);
  nghttp3_data_reader reader = {read_body};
  return nghttp3_conn_submit_response(peer->http, id, fields, count, is_end ? NULL : &reader);
}

int quic_peer_inform(quic_peer *peer, int64_t id, const char *status) {
  nghttp3_nv field = {(uint8_t *)":status", (uint8_t *)status, 7, strlen(status), NGHTTP3_NV_FLAG_NONE};
  return nghttp3_conn_submit_info(peer->http, id, &field, 1);
}

void quic_peer_append(stream *s, const uint8_t *bytes, size_t length) {
  chunk *c = malloc(sizeof *c + length);
  *c = (chunk){.length = length};
  memcpy(c->bytes, bytes, length);
  if (s->last) s->last->next = c;
  if (!s->first) s->first = c;
  s->last = c;
  if (!s->unsent) s->unsent = c;
}

void quic_peer_send(quic_peer *peer, int64_t id, const uint8_t *bytes, size_t length) {
  stream *s = quic_peer_find(peer, id);
  if (!s || length == 0) return;
  quic_peer_append(s, bytes, length);
  (void)nghttp3_conn_resume_stream(peer->http, id);
}

void quic_peer_finish(quic_peer *peer, int64_t id, const char *trailers) {
  stream *s = quic_peer_find(peer, id);
  if (!s) return;
  s->is_finished = 1;
  if (trailers && *trailers) {
    size_t length = 0;
    while (trailers[length]) length += strlen(trailers + length) + 1;
    s->trailers = calloc(1, length + 1);
    memcpy(s->trailers, trailers, length);
  }
  (void)nghttp3_conn_resume_stream(peer->http, id);
}

int quic_peer_reset(quic_peer *peer, int64_t id, uint64_t code) {
  if (peer->http) nghttp3_conn_shutdown_stream_write(peer->http, id);
  return connect_ngtcp2_shutdown_stream_write(peer->connection, id, code);
}

int quic_peer_stop(quic_peer *peer, int64_t id, uint64_t code) {
  if (peer->http) (void)nghttp3_conn_shutdown_stream_read(peer->http, id);
  return connect_ngtcp2_shutdown_stream_read(peer->connection, id, code);
}

void quic_peer_extend(quic_peer *peer, int64_t id, uint64_t count) {
  ngtcp2_conn_extend_max_offset(peer->connection, count);
  (void)ngtcp2_conn_extend_max_stream_offset(peer->connection, id, count);
}

void quic_peer_extend_streams(quic_peer *peer, uint64_t count) {
  ngtcp2_conn_extend_max_streams_bidi(peer->connection, count);
}

int quic_peer_notice(quic_peer *peer) { return nghttp3_conn_submit_shutdown_notice(peer->http); }
int quic_peer_go_away(quic_peer *peer) { return nghttp3_conn_shutdown(peer->http); }

int quic_peer_update_key(quic_peer *peer, uint64_t now) {
  return ngtcp2_conn_initiate_key_update(peer->connection, now);
}

int64_t quic_peer_open_raw(quic_peer *peer) {
  int64_t id = -1;
  if (ngtcp2_conn_open_uni_stream(peer->connection, &id, NULL) != 0) return -1;
  quic_peer_find_or_add(peer, id);
  return id;
}

int quic_peer_write_raw(quic_peer *peer, int64_t id, const uint8_t *bytes, size_t length, int is_end) {
  stream *s = quic_peer_find_or_add(peer, id);
  if (length) quic_peer_append(s, bytes, length);
  if (is_end) s->is_raw_end = 1;
  return 0;
}

size_t quic_peer_close(
    quic_peer *peer, uint8_t *datagram, size_t capacity, int is_application, uint64_t code, const char *reason,
    uint64_t now) {
  ngtcp2_pkt_info info = {0};
  const uint8_t *text = (const uint8_t *)reason;
#if CONNECT_NGTCP2_V1
  ngtcp2_ccerr error;
  ngtcp2_ccerr_default(&error);
  if (is_application) ngtcp2_ccerr_set_application_error(&error, code, text, strlen(reason));
  else ngtcp2_ccerr_set_transport_error(&error, code, text, strlen(reason));
#else
  ngtcp2_connection_close_error error;
  ngtcp2_connection_close_error_default(&error);
  if (is_application)
    ngtcp2_connection_close_error_set_application_error(&error, code, text, strlen(reason));
  else
    ngtcp2_connection_close_error_set_transport_error(&error, code, text, strlen(reason));
#endif
  ngtcp2_ssize count =
      ngtcp2_conn_write_connection_close(peer->connection, NULL, &info, datagram, capacity, &error, now);
  return count > 0 ? (size_t)count : 0;
}

size_t quic_peer_give_up(quic_peer *peer, int error, uint8_t *datagram, size_t capacity, uint64_t now) {
  if (error == NGTCP2_ERR_DRAINING || error == NGTCP2_ERR_IDLE_CLOSE || error == NGTCP2_ERR_DROP_CONN) return 0;
  int alert = error == NGTCP2_ERR_CRYPTO ? ngtcp2_conn_get_tls_alert(peer->connection) : -1;
  ngtcp2_ssize count = connect_ngtcp2_write_close(peer->connection, datagram, capacity, error, alert, 0, now);
  return count > 0 ? (size_t)count : 0;
}

size_t quic_peer_stateless_reset(quic_peer *peer, uint8_t *datagram, size_t capacity) {
  uint8_t random[64];
  gnutls_rnd(GNUTLS_RND_NONCE, random, sizeof random);
  ngtcp2_ssize count =
      ngtcp2_pkt_write_stateless_reset(datagram, capacity, peer->reset_token, random, sizeof random);
  return count > 0 ? (size_t)count : 0;
}

uint64_t quic_peer_unacknowledged(quic_peer *peer) {
  return connect_ngtcp2_get_facts(peer->connection).bytes_in_flight;
}
