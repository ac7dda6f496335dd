// A connection of a client: bytes in, bytes out, over a socket with or without TLS.
#ifndef CONNECTION_H
#define CONNECTION_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "answers.h"

struct http1;
struct http2;

struct connection {
  int fd;
  SSL *tls;
  struct answer *answers;
  // One of them once the first bytes have shown the version.
  struct http1 *http1;
  struct http2 *http2;
  // What waits to be written.
  uint8_t *output;
  size_t output_start, output_count, output_capacity;
  bool waits_for_writability;
};

// Adds bytes to what waits to be written.
void connection_append(struct connection *connection, const void *data, size_t count);

// How many bytes wait.
static inline size_t connection_waiting(const struct connection *connection) {
  return connection->output_count - connection->output_start;
}

// HTTP/2: feeds bytes; fills the output. False if the connection is to be closed.
struct http2 *http2_new(struct connection *connection);
void http2_free(struct http2 *http2);
bool http2_receive(struct http2 *http2, const uint8_t *data, size_t count);
bool http2_fill(struct http2 *http2);

// HTTP/1.1, the same.
struct http1 *http1_new(struct connection *connection);
void http1_free(struct http1 *http1);
bool http1_receive(struct http1 *http1, const uint8_t *data, size_t count);

#endif
