#define _GNU_SOURCE
#include "http3.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../../CQUICPeer/peer.h"

// At most so many bytes, and datagrams, are given to the system at once.
enum { batch_bytes = 64000, batch_datagrams = 44, requests_at_a_time = 4096, ports = 65536 };

struct request {
  struct answer *answer;
  // 0 for one.
  size_t messages;
};

// One for each port of a client: a connection is told by it.
struct client {
  struct http3 *http3;
  quic_peer *peer;
  struct sockaddr_in address;
  size_t index;
  bool has_news;
  // By stream.
  struct request requests[requests_at_a_time];
};

struct http3 {
  int fd;
  struct sockaddr_in address;
  struct answer *answers;
  quic_peer_options options;
  quic_peer_identity *identity;
  struct client *by_port[ports];
  struct client **clients;
  size_t count, capacity;
};

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static char *contents(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) return NULL;
  char *text = calloc(1, 64 << 10);
  size_t count = fread(text, 1, (64 << 10) - 1, file);
  fclose(file);
  text[count] = 0;
  return text;
}

struct http3 *http3_new(int port, const char *certificate, const char *key, struct answer *answers) {
  struct http3 *http3 = calloc(1, sizeof *http3);
  http3->answers = answers;
  http3->address.sin_family = AF_INET;
  http3->address.sin_port = htons((uint16_t)port);
  http3->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  http3->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  int one = 1, large = 4 << 20;
  setsockopt(http3->fd, SOL_UDP, UDP_GRO, &one, sizeof one);
  setsockopt(http3->fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
  setsockopt(http3->fd, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
  if (bind(http3->fd, (struct sockaddr *)&http3->address, sizeof http3->address) != 0) {
    close(http3->fd);
    free(http3);
    return NULL;
  }
  quic_peer_default_options(&http3->options);
  http3->options.certificate = contents(certificate);
  http3->options.key = contents(key);
  http3->options.stream_window = 16 << 20;
  http3->options.connection_window = 64 << 20;
  http3->options.streams = 1000;
  http3->options.idle_timeout = 600 * 1000000000ull;
  http3->identity = http3->options.certificate != NULL && http3->options.key != NULL
                        ? quic_peer_identity_new(&http3->options)
                        : NULL;
  if (http3->identity == NULL) {
    fprintf(stderr, "cannot use %s and %s\n", certificate, key);
    exit(1);
  }
  return http3;
}

int http3_fd(const struct http3 *http3) { return http3->fd; }

// MARK: Requests

static void respond(struct client *client, int64_t id, struct request *request) {
  struct answer *answer = request->answer;
  if (answer == NULL) return;
  char fields[256];
  size_t count = (size_t)snprintf(fields, sizeof fields, "content-type%c%s", 0, answer->content_type) + 1;
  if (answer->encoding_header != NULL) {
    count += (size_t)snprintf(fields + count, sizeof fields - count, "%s%cgzip", answer->encoding_header, 0) + 1;
  }
  fields[count] = 0;
  (void)quic_peer_respond(client->peer, id, "200", fields, 0);
  for (size_t i = 0; i < (request->messages > 0 ? request->messages : 1); i++) {
    quic_peer_send(client->peer, id, answer->message.data, answer->message.count);
  }
  quic_peer_send(client->peer, id, answer->end.data, answer->end.count);
  quic_peer_finish(client->peer, id, answer->has_http_trailers ? "grpc-status\0" "0\0" : NULL);
  *request = (struct request){0};
}

static void take(void *context, int kind, int64_t id, uint64_t code, const uint8_t *name, size_t name_count,
                 const uint8_t *value, size_t value_count) {
  (void)code;
  struct client *client = context;
  struct request *request = &client->requests[(id >> 2) % requests_at_a_time];
  if (kind == QUIC_PEER_END) {
    respond(client, id, request);
  } else if (kind == QUIC_PEER_HEADER && name_count == 12 && memcmp(name, "content-type", 12) == 0) {
    enum format format = format_of((const char *)value, value_count);
    if (format < format_count) request->answer = &client->http3->answers[format];
  } else if (kind == QUIC_PEER_HEADER && name_count == 10 && memcmp(name, "x-messages", 10) == 0) {
    char text[24] = {0};
    memcpy(text, value, value_count < sizeof text ? value_count : sizeof text - 1);
    request->messages = strtoul(text, NULL, 10);
  }
}

// MARK: Datagrams

static void send_batch(struct client *client, uint8_t *bytes, size_t count, size_t size) {
  struct iovec piece = {bytes, count};
  union {
    char bytes[CMSG_SPACE(sizeof(uint16_t))];
    struct cmsghdr alignment;
  } control = {0};
  struct msghdr message = {
      .msg_name = &client->address, .msg_namelen = sizeof client->address, .msg_iov = &piece, .msg_iovlen = 1};
  if (count > size) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    uint16_t segment = (uint16_t)size;
    memcpy(CMSG_DATA(header), &segment, sizeof segment);
  }
  // What the system does not take is lost, which QUIC bears.
  (void)sendmsg(client->http3->fd, &message, 0);
}

// Sends as much as congestion control and its pace allow.
static void flush(struct client *client) {
  static uint8_t bytes[batch_bytes + DATAGRAM];
  uint64_t time = now();
  size_t left = ngtcp2_conn_get_send_quantum(client->peer->connection);
  size_t count = 0, size = 0, datagrams = 0;
  bool has_sent = false;
  for (;;) {
    size_t written = quic_peer_write(client->peer, bytes + count, DATAGRAM, time);
    if (written == 0) break;
    has_sent = true;
    if (datagrams > 0 && written > size) {
      send_batch(client, bytes, count, size);
      memmove(bytes, bytes + count, written);
      count = 0, datagrams = 0;
    }
    if (datagrams == 0) size = written;
    count += written, datagrams++;
    if (written < size || datagrams == batch_datagrams) {
      send_batch(client, bytes, count, size);
      count = 0, datagrams = 0;
    }
    if (left <= written) break;
    left -= written;
  }
  if (datagrams > 0) send_batch(client, bytes, count, size);
  if (has_sent) ngtcp2_conn_update_pkt_tx_time(client->peer->connection, time);
}

static void forget(struct client *client) {
  struct http3 *http3 = client->http3;
  http3->by_port[ntohs(client->address.sin_port)] = NULL;
  http3->clients[client->index] = http3->clients[--http3->count];
  http3->clients[client->index]->index = client->index;
  quic_peer_free(client->peer);
  free(client);
}

static struct client *accept_client(struct http3 *http3, const struct sockaddr_in *address, const uint8_t *datagram,
                                    size_t count) {
  struct client *client = calloc(1, sizeof *client);
  client->http3 = http3;
  client->address = *address;
  client->peer = quic_peer_accept(http3->identity, &http3->options, datagram, count, &http3->address,
                                  sizeof http3->address, address, sizeof *address, take, client, now());
  if (client->peer == NULL) {
    free(client);
    return NULL;
  }
  if (http3->count == http3->capacity) {
    http3->capacity = http3->capacity > 0 ? 2 * http3->capacity : 16;
    http3->clients = realloc(http3->clients, http3->capacity * sizeof *http3->clients);
    if (http3->clients == NULL) abort();
  }
  client->index = http3->count;
  http3->clients[http3->count++] = client;
  http3->by_port[ntohs(address->sin_port)] = client;
  return client;
}

static void receive(struct http3 *http3, const struct sockaddr_in *address, const uint8_t *datagram, size_t count) {
  struct client *client = http3->by_port[ntohs(address->sin_port)];
  if (client == NULL) client = accept_client(http3, address, datagram, count);
  if (client == NULL) return;
  if (quic_peer_read(client->peer, datagram, count, now()) != 0) {
    forget(client);
  } else {
    client->has_news = true;
  }
}

static size_t segment_size(struct msghdr *message, size_t count) {
  for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL; header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_UDP || header->cmsg_type != UDP_GRO) continue;
    int size;
    memcpy(&size, CMSG_DATA(header), sizeof size);
    if (size > 0) return (size_t)size;
  }
  return count;
}

void http3_receive(struct http3 *http3) {
  static uint8_t bytes[64 << 10];
  for (;;) {
    struct sockaddr_in address;
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec piece = {bytes, sizeof bytes};
    struct msghdr message = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &piece, .msg_iovlen = 1,
                             .msg_control = control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(http3->fd, &message, 0);
    if (count < 0) break;
    size_t size = segment_size(&message, (size_t)count);
    for (size_t start = 0; start < (size_t)count; start += size) {
      size_t left = (size_t)count - start;
      receive(http3, &address, bytes + start, left < size ? left : size);
    }
  }
  for (size_t i = 0; i < http3->count; i++) {
    if (!http3->clients[i]->has_news) continue;
    http3->clients[i]->has_news = false;
    flush(http3->clients[i]);
  }
}

// MARK: Time

int64_t http3_wait(const struct http3 *http3) {
  uint64_t first = UINT64_MAX;
  for (size_t i = 0; i < http3->count; i++) {
    uint64_t expiry = quic_peer_expiry(http3->clients[i]->peer);
    if (expiry < first) first = expiry;
  }
  if (first == UINT64_MAX) return -1;
  uint64_t time = now();
  return first > time ? (int64_t)(first - time) : 0;
}

void http3_expire(struct http3 *http3) {
  for (size_t i = http3->count; i-- > 0;) {
    struct client *client = http3->clients[i];
    uint64_t time = now();
    if (quic_peer_expiry(client->peer) > time) continue;
    if (quic_peer_expire(client->peer, time) != 0) {
      forget(client);
    } else {
      flush(client);
    }
  }
}
