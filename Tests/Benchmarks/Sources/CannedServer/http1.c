#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "connection.h"

// Takes requests one after the other and answers each when it is complete. Knows just what clients of the
// benchmarks send: heads below 16 KiB, bodies with a content-length or in chunks.
struct http1 {
  struct connection *connection;
  char head[16 << 10];
  size_t head_count;
  struct answer *answer;
  size_t messages;
  bool is_in_body, is_chunked;
  size_t missing;
  // The last bytes of a chunked body, to find its end.
  char tail[5];
};

struct http1 *http1_new(struct connection *connection) {
  struct http1 *http1 = calloc(1, sizeof *http1);
  http1->connection = connection;
  return http1;
}

void http1_free(struct http1 *http1) { free(http1); }

static void respond(struct http1 *http1) {
  struct answer *answer = http1->answer;
  size_t count = answer->message.count * http1->messages + answer->end.count;
  char head[256];
  const char *encoding = answer->encoding_header;
  int length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %zu\r\n%s%s\r\n",
                        answer->content_type, count, encoding != NULL ? encoding : "",
                        encoding != NULL ? ": gzip\r\n" : "");
  connection_append(http1->connection, head, (size_t)length);
  for (size_t i = 0; i < http1->messages; i++) {
    connection_append(http1->connection, answer->message.data, answer->message.count);
  }
  connection_append(http1->connection, answer->end.data, answer->end.count);
  http1->is_in_body = false;
  http1->head_count = 0;
}

static bool parse_head(struct http1 *http1) {
  http1->answer = NULL;
  http1->messages = 1;
  http1->missing = 0;
  http1->is_chunked = false;
  memset(http1->tail, 0, sizeof http1->tail);
  for (char *line = strstr(http1->head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
    line += 2;
    if (strncasecmp(line, "content-type: ", 14) == 0) {
      char *value = line + 14;
      enum format format = format_of(value, strcspn(value, "\r"));
      if (format < format_count) http1->answer = &http1->connection->answers[format];
    } else if (strncasecmp(line, "content-length: ", 16) == 0) {
      http1->missing = strtoul(line + 16, NULL, 10);
    } else if (strncasecmp(line, "x-messages: ", 12) == 0) {
      http1->messages = strtoul(line + 12, NULL, 10);
    } else if (strncasecmp(line, "transfer-encoding: chunked", 26) == 0) {
      http1->is_chunked = true;
    }
  }
  http1->is_in_body = true;
  return http1->answer != NULL;
}

bool http1_receive(struct http1 *http1, const uint8_t *data, size_t count) {
  while (count > 0) {
    if (!http1->is_in_body) {
      if (http1->head_count + 1 >= sizeof http1->head) return false;
      http1->head[http1->head_count++] = (char)*data++;
      count--;
      http1->head[http1->head_count] = 0;
      if (http1->head_count < 4 || memcmp(http1->head + http1->head_count - 4, "\r\n\r\n", 4) != 0) continue;
      if (!parse_head(http1)) return false;
      if (!http1->is_chunked && http1->missing == 0) respond(http1);
    } else if (http1->is_chunked) {
      memmove(http1->tail, http1->tail + 1, 4);
      http1->tail[4] = (char)*data++;
      count--;
      if (memcmp(http1->tail, "0\r\n\r\n", 5) == 0) respond(http1);
    } else {
      size_t part = http1->missing < count ? http1->missing : count;
      http1->missing -= part, data += part, count -= part;
      if (http1->missing == 0) respond(http1);
    }
  }
  return true;
}
