// A server that costs as little as possible: one thread, one epoll, answers made once. Listens on a free port of
// 127.0.0.1, prints it, and ends when its standard input does. With TLS it speaks HTTP/3, too, on the UDP port of that number.
//
//   CannedServer [--size BYTES] [--gzip] [--tls CERTIFICATE KEY]

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "http3.h"

void connection_append(struct connection *connection, const void *data, size_t count) {
  if (connection->output_start == connection->output_count) {
    connection->output_start = connection->output_count = 0;
  }
  if (connection->output_count + count > connection->output_capacity) {
    connection->output_capacity = 2 * (connection->output_count + count);
    connection->output = realloc(connection->output, connection->output_capacity);
    if (connection->output == NULL) abort();
  }
  memcpy(connection->output + connection->output_count, data, count);
  connection->output_count += count;
}

// Bytes read or written; 0 at the end; -1 if there is nothing to do now.
static ssize_t transfer(struct connection *connection, void *buffer, size_t count, bool writes) {
  if (connection->tls != NULL) {
    int result = writes ? SSL_write(connection->tls, buffer, (int)count) : SSL_read(connection->tls, buffer, (int)count);
    if (result > 0) return result;
    int error = SSL_get_error(connection->tls, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? -1 : 0;
  }
  ssize_t result = writes ? write(connection->fd, buffer, count) : read(connection->fd, buffer, count);
  if (result > 0) return result;
  return result < 0 && (errno == EAGAIN || errno == EINTR) ? -1 : 0;
}

static bool write_output(struct connection *connection) {
  for (;;) {
    if (connection->http2 != NULL && !http2_fill(connection->http2)) return false;
    if (connection_waiting(connection) == 0) return true;
    ssize_t count =
        transfer(connection, connection->output + connection->output_start, connection_waiting(connection), true);
    if (count == 0) return false;
    if (count < 0) return true;
    connection->output_start += (size_t)count;
  }
}

static bool read_input(struct connection *connection) {
  static uint8_t buffer[256 << 10];
  for (;;) {
    ssize_t count = transfer(connection, buffer, sizeof buffer, false);
    if (count == 0) return false;
    if (count < 0) return true;
    if (connection->http1 == NULL && connection->http2 == NULL) {
      // The first read has at least the three bytes that tell.
      if (count >= 3 && memcmp(buffer, "PRI", 3) == 0) {
        connection->http2 = http2_new(connection);
      } else {
        connection->http1 = http1_new(connection);
      }
    }
    bool is_fine = connection->http2 != NULL ? http2_receive(connection->http2, buffer, (size_t)count)
                                             : http1_receive(connection->http1, buffer, (size_t)count);
    if (!is_fine) return false;
    if ((size_t)count < sizeof buffer && connection->tls == NULL) return true;
  }
}

static void close_connection(struct connection *connection) {
  http2_free(connection->http2);
  http1_free(connection->http1);
  if (connection->tls != NULL) SSL_free(connection->tls);
  close(connection->fd);
  free(connection->output);
  free(connection);
}

static int choose_protocol(SSL *tls, const unsigned char **out, unsigned char *count, const unsigned char *in,
                           unsigned int in_count, void *user) {
  (void)tls, (void)user;
  static const unsigned char known[] = "\x02h2\x08http/1.1";
  int result = SSL_select_next_proto((unsigned char **)out, count, known, sizeof known - 1, in, in_count);
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static SSL_CTX *make_tls(const char *certificate, const char *key) {
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  if (context == NULL || SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    fprintf(stderr, "cannot use %s and %s\n", certificate, key);
    exit(1);
  }
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

static int listen_on_a_free_port(int *port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 1024) != 0 ||
      getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
    perror("listen");
    exit(1);
  }
  *port = ntohs(address.sin_port);
  return fd;
}

static void accept_all(int listener, int poll, SSL_CTX *tls, struct answer *answers) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) return;
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *connection = calloc(1, sizeof *connection);
    connection->fd = fd;
    connection->answers = answers;
    if (tls != NULL) {
      connection->tls = SSL_new(tls);
      SSL_set_fd(connection->tls, fd);
      SSL_set_accept_state(connection->tls);
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
  }
}

static void serve(struct connection *connection, uint32_t events, int poll) {
  bool is_open = true;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) is_open = read_input(connection);
  if (is_open) is_open = write_output(connection);
  if (!is_open) {
    close_connection(connection);
    return;
  }
  bool waits = connection_waiting(connection) > 0;
  if (waits != connection->waits_for_writability) {
    connection->waits_for_writability = waits;
    struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.ptr = connection};
    epoll_ctl(poll, EPOLL_CTL_MOD, connection->fd, &event);
  }
}

int main(int count, char **arguments) {
  size_t size = 20;
  bool gzip = false;
  SSL_CTX *tls = NULL;
  const char *certificate = NULL, *key = NULL;
  for (int i = 1; i < count; i++) {
    if (strcmp(arguments[i], "--size") == 0 && i + 1 < count) {
      size = strtoul(arguments[++i], NULL, 10);
    } else if (strcmp(arguments[i], "--gzip") == 0) {
      gzip = true;
    } else if (strcmp(arguments[i], "--tls") == 0 && i + 2 < count) {
      certificate = arguments[++i];
      key = arguments[++i];
      tls = make_tls(certificate, key);
    } else {
      fprintf(stderr, "unknown argument %s\n", arguments[i]);
      return 2;
    }
  }
  signal(SIGPIPE, SIG_IGN);
  static struct answer answers[format_count];
  answers_make(size, gzip, answers);

  int port = 0, poll = epoll_create1(0), listener = listen_on_a_free_port(&port);
  struct http3 *http3 = NULL;
  while (tls != NULL && (http3 = http3_new(port, certificate, key, answers)) == NULL) {
    // Somebody has the UDP port of this number.
    close(listener);
    listener = listen_on_a_free_port(&port);
  }
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  event.data.ptr = NULL;
  epoll_ctl(poll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  event.data.ptr = http3;
  if (http3 != NULL) epoll_ctl(poll, EPOLL_CTL_ADD, http3_fd(http3), &event);
  printf("%d\n", port);
  fflush(stdout);
  for (;;) {
    struct epoll_event events[256];
    int64_t wait = http3 != NULL ? http3_wait(http3) : -1;
    struct timespec limit = {wait / 1000000000, wait % 1000000000};
    int ready = epoll_pwait2(poll, events, 256, wait < 0 ? NULL : &limit, NULL);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.ptr == NULL) return 0;
      if (events[i].data.ptr == &listener) {
        accept_all(listener, poll, tls, answers);
      } else if (events[i].data.ptr == http3) {
        http3_receive(http3);
      } else {
        serve(events[i].data.ptr, events[i].events, poll);
      }
    }
    if (http3 != NULL) http3_expire(http3);
  }
}
