#include "answers.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *const content_types[format_count] = {
    [connect_proto] = "application/proto",
    [connect_json] = "application/json",
    [connect_stream_proto] = "application/connect+proto",
    [connect_stream_json] = "application/connect+json",
    [grpc_proto] = "application/grpc+proto",
    [grpc_json] = "application/grpc+json",
    [grpc_web_proto] = "application/grpc-web+proto",
    [grpc_web_json] = "application/grpc-web+json",
};

static void append(struct bytes *bytes, const void *data, size_t count) {
  bytes->data = realloc(bytes->data, bytes->count + count);
  if (bytes->data == NULL) abort();
  memcpy(bytes->data + bytes->count, data, count);
  bytes->count += count;
}

// connect.bench.v1.Payload { bytes data = 1; } in protobuf.
static struct bytes proto_message(size_t size) {
  struct bytes bytes = {0};
  if (size == 0) return bytes;
  append(&bytes, "\x0a", 1);
  for (size_t rest = size; ; rest >>= 7) {
    uint8_t byte = (uint8_t)(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0);
    append(&bytes, &byte, 1);
    if (rest <= 0x7f) break;
  }
  uint8_t *data = malloc(size);
  memset(data, 'x', size);
  append(&bytes, data, size);
  free(data);
  return bytes;
}

// The same in JSON, where bytes are base64: "xxx" is "eHh4".
static struct bytes json_message(size_t size) {
  struct bytes bytes = {0};
  append(&bytes, "{\"data\":\"", 9);
  for (size_t i = 0; i < size / 3; i++) append(&bytes, "eHh4", 4);
  if (size % 3 == 1) append(&bytes, "eA==", 4);
  if (size % 3 == 2) append(&bytes, "eHg=", 4);
  append(&bytes, "\"}", 2);
  return bytes;
}

static struct bytes gzipped(struct bytes bytes) {
  z_stream stream = {0};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) abort();
  struct bytes result = {malloc(deflateBound(&stream, bytes.count)), 0};
  stream.next_in = bytes.data;
  stream.avail_in = (uInt)bytes.count;
  stream.next_out = result.data;
  stream.avail_out = (uInt)deflateBound(&stream, bytes.count);
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) abort();
  result.count = stream.total_out;
  deflateEnd(&stream);
  return result;
}

static struct bytes enveloped(uint8_t flags, struct bytes message) {
  struct bytes bytes = {0};
  uint8_t prefix[5] = {
      flags, (uint8_t)(message.count >> 24), (uint8_t)(message.count >> 16), (uint8_t)(message.count >> 8),
      (uint8_t)message.count,
  };
  append(&bytes, prefix, 5);
  append(&bytes, message.data, message.count);
  return bytes;
}

static struct bytes text(const char *text) {
  struct bytes bytes = {0};
  append(&bytes, text, strlen(text));
  return bytes;
}

void answers_make(size_t size, bool gzip, struct answer answers[format_count]) {
  for (int format = 0; format < format_count; format++) {
    struct answer *answer = &answers[format];
    *answer = (struct answer){.content_type = content_types[format]};
    bool is_json = strstr(content_types[format], "json") != NULL;
    struct bytes message = is_json ? json_message(size) : proto_message(size);
    if (gzip) message = gzipped(message);
    uint8_t flags = gzip ? 1 : 0;
    switch (format) {
      case connect_proto:
      case connect_json:
        answer->message = message;
        if (gzip) answer->encoding_header = "content-encoding";
        break;
      case connect_stream_proto:
      case connect_stream_json:
        answer->message = enveloped(flags, message);
        answer->end = enveloped(2, text("{}"));
        if (gzip) answer->encoding_header = "connect-content-encoding";
        break;
      case grpc_proto:
      case grpc_json:
        answer->message = enveloped(flags, message);
        answer->has_http_trailers = true;
        if (gzip) answer->encoding_header = "grpc-encoding";
        break;
      default:
        answer->message = enveloped(flags, message);
        answer->end = enveloped(0x80, text("grpc-status: 0\r\n"));
        if (gzip) answer->encoding_header = "grpc-encoding";
        break;
    }
  }
}

enum format format_of(const char *content_type, size_t count) {
  for (int format = 0; format < format_count; format++) {
    if (strlen(content_types[format]) == count && memcmp(content_types[format], content_type, count) == 0) {
      return (enum format)format;
    }
  }
  if (count == 16 && memcmp(content_type, "application/grpc", 16) == 0) return grpc_proto;
  return format_count;
}
