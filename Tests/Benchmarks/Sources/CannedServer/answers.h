// What the server answers: bytes made once, when it starts.
#ifndef ANSWERS_H
#define ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The wire formats, told apart by the request's content-type.
enum format {
  connect_proto,
  connect_json,
  connect_stream_proto,
  connect_stream_json,
  grpc_proto,
  grpc_json,
  grpc_web_proto,
  grpc_web_json,
  format_count,
};

struct bytes {
  uint8_t *data;
  size_t count;
};

// One message as it is on the wire, enveloped where the format does so, and what ends the body.
struct answer {
  const char *content_type;
  // The header that names the encoding of messages; null if they are not compressed.
  const char *encoding_header;
  bool has_http_trailers;
  struct bytes message;
  struct bytes end;
};

// Makes the answers for messages with `size` bytes of data, gzipped if `gzip` is set.
void answers_make(size_t size, bool gzip, struct answer answers[format_count]);

// The format of a content-type; format_count if it is none of them.
enum format format_of(const char *content_type, size_t count);

#endif
