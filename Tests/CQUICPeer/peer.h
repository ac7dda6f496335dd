#ifndef CONNECT_QUIC_PEER_INTERNAL_H
#define CONNECT_QUIC_PEER_INTERNAL_H

#include "../../Sources/CGnuTLS/shim.h"
#include "../../Sources/CNghttp3/shim.h"
#include "../../Sources/CNgtcp2/shim.h"
#include "include/quic_peer.h"

enum { MAXIMUM_FIELDS = 64, MAXIMUM_PIECES = 16, DATAGRAM = 1452 };

// A piece of a response's body, kept until the client has acknowledged it.
typedef struct chunk {
  struct chunk *next;
  size_t length;
  size_t acknowledged;
  uint8_t bytes[];
} chunk;

typedef struct stream {
  struct stream *next;
  int64_t id;
  chunk *first, *last, *unsent;
  int is_finished;
  char *trailers;
  // Of peers without HTTP: what was written, which stays until the connection ends.
  int is_raw_end;
} stream;

struct quic_peer_identity {
  gnutls_certificate_credentials_t credentials;
  gnutls_priority_t priorities;
  gnutls_datum_t ticket_key;
  gnutls_anti_replay_t anti_replay;
};

struct quic_peer {
  quic_peer_options options;
  ngtcp2_conn *connection;
  nghttp3_conn *http;
  gnutls_session_t tls;
  ngtcp2_crypto_conn_ref reference;
  ngtcp2_path_storage path;
  quic_peer_callback callback;
  void *context;
  stream *streams;
  uint8_t reset_token[NGTCP2_STATELESS_RESET_TOKENLEN];
};

stream *quic_peer_find(quic_peer *peer, int64_t id);
stream *quic_peer_find_or_add(quic_peer *peer, int64_t id);
void quic_peer_tell(quic_peer *peer, int kind, int64_t id, uint64_t code);
int quic_peer_start_http(quic_peer *peer);
void quic_peer_append(stream *s, const uint8_t *bytes, size_t length);

#endif
