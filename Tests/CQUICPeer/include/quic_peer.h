#ifndef CONNECT_QUIC_PEER_H
#define CONNECT_QUIC_PEER_H

#include <stddef.h>
#include <stdint.h>

// A server's half of one HTTP/3 connection, on the libraries that the client has, without a socket: datagrams go in and come
// out, and the test says what is answered. It must be used on one thread.

typedef struct quic_peer quic_peer;

// What was found in datagrams, in order.
enum quic_peer_event_kind {
  QUIC_PEER_HANDSHAKE,
  QUIC_PEER_HEADER,   // name, value
  QUIC_PEER_HEADERS,  // the request's head is complete
  QUIC_PEER_DATA,     // value
  QUIC_PEER_TRAILER,  // name, value
  QUIC_PEER_END,      // the request is complete
  QUIC_PEER_RESET,    // code: the client has reset its side
  QUIC_PEER_CLOSED,   // code: the stream is gone
  QUIC_PEER_EARLY,    // something has come of the stream before the handshake was complete
};

typedef void (*quic_peer_callback)(
    void *context, int kind, int64_t stream, uint64_t code, const uint8_t *name, size_t name_length,
    const uint8_t *value, size_t value_length);

typedef struct quic_peer_options {
  const char *certificate;  // PEM, the whole chain
  const char *key;          // PEM
  const char *client_authority;  // PEM; null asks for no certificate of the client
  const char *protocol;          // ALPN; null means h3
  uint64_t stream_window;
  uint64_t connection_window;
  uint64_t streams;
  uint64_t uni_streams;
  uint64_t idle_timeout;  // nanoseconds
  int holds_windows;      // whether windows are not extended before quic_peer_extend
  int holds_streams;      // whether no more streams are allowed as others end
  int tickets;            // whether clients get tickets for early data
  int rejects_early_data;
  int confirms_early;     // whether the handshake is confirmed before the client has completed it, which is wrong
  int plain;              // whether it is no HTTP: streams are for quic_peer_write_raw
} quic_peer_options;

void quic_peer_default_options(quic_peer_options *options);

// What a connection needs that all connections share: made once.
typedef struct quic_peer_identity quic_peer_identity;
quic_peer_identity *quic_peer_identity_new(const quic_peer_options *options);
void quic_peer_identity_free(quic_peer_identity *identity);

// Null if the datagram does not begin a connection. The identity and the strings of the options must outlive the peer.
quic_peer *quic_peer_accept(
    quic_peer_identity *identity, const quic_peer_options *options, const uint8_t *datagram, size_t length,
    const void *local_address, size_t local_length, const void *remote_address, size_t remote_length,
    quic_peer_callback callback, void *context, uint64_t now);
void quic_peer_free(quic_peer *peer);

// If the datagram begins a connection without a token: the Retry packet that asks for one (RFC 9000, section 8.1.2), else 0.
// A connection with such a token is accepted as any other.
size_t quic_peer_retry(
    const uint8_t *datagram, size_t length, const void *remote_address, size_t remote_length, uint8_t *retry,
    size_t capacity, uint64_t now);

// Returns 0, or libngtcp2's error; then the connection is to be closed with quic_peer_close.
int quic_peer_read(quic_peer *peer, const uint8_t *datagram, size_t length, uint64_t now);
// Writes the next datagram; 0 if there is none now.
size_t quic_peer_write(quic_peer *peer, uint8_t *datagram, size_t capacity, uint64_t now);
uint64_t quic_peer_expiry(quic_peer *peer);
int quic_peer_expire(quic_peer *peer, uint64_t now);

// Begins a response. `headers` are names and values, each ended by a NUL. The body stays open unless `is_end`.
int quic_peer_respond(quic_peer *peer, int64_t stream, const char *status, const char *headers, int is_end);
int quic_peer_inform(quic_peer *peer, int64_t stream, const char *status);
void quic_peer_send(quic_peer *peer, int64_t stream, const uint8_t *bytes, size_t length);
// Ends the response, with trailers if there are any.
void quic_peer_finish(quic_peer *peer, int64_t stream, const char *trailers);

int quic_peer_reset(quic_peer *peer, int64_t stream, uint64_t code);
int quic_peer_stop(quic_peer *peer, int64_t stream, uint64_t code);
void quic_peer_extend(quic_peer *peer, int64_t stream, uint64_t count);
void quic_peer_extend_streams(quic_peer *peer, uint64_t count);
// GOAWAY: first that no more requests are wanted, then with the identifier from which on none was processed.
int quic_peer_notice(quic_peer *peer);
int quic_peer_go_away(quic_peer *peer);
int quic_peer_update_key(quic_peer *peer, uint64_t now);
// Bytes on a stream as they are, past HTTP; only if options.plain.
int quic_peer_write_raw(quic_peer *peer, int64_t stream, const uint8_t *bytes, size_t length, int is_end);
int64_t quic_peer_open_raw(quic_peer *peer);
// The packet that ends the connection; an error code of HTTP/3 if `is_application`, else of QUIC.
size_t quic_peer_close(
    quic_peer *peer, uint8_t *datagram, size_t capacity, int is_application, uint64_t code, const char *reason,
    uint64_t now);
// The packet that ends the connection after an error of quic_peer_read or quic_peer_expire.
size_t quic_peer_give_up(quic_peer *peer, int error, uint8_t *datagram, size_t capacity, uint64_t now);
// What a server that has lost the connection answers.
size_t quic_peer_stateless_reset(quic_peer *peer, uint8_t *datagram, size_t capacity);
uint64_t quic_peer_unacknowledged(quic_peer *peer);

#endif
