#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"

// Output beyond this waits in the session.
static const size_t output_limit = 256 << 10;

struct http2 {
  struct connection *connection;
  nghttp2_session *session;
};

enum kind { unary, server_stream, client_stream, bidi };

struct stream {
  struct answer *answer;
  enum kind kind;
  // How many messages are to be sent, and where in the present one we are.
  size_t messages, offset;
  // Whether each message gets a DATA frame of its own.
  bool is_framed_each;
  bool is_request_complete, is_deferred, has_responded;
  size_t end_offset;
  // The request's envelopes: what has come of a prefix, and what is missing of a message.
  uint8_t prefix[5];
  size_t prefix_count, missing;
};

static bool ends_with(const uint8_t *text, size_t count, const char *end) {
  size_t length = strlen(end);
  return count >= length && memcmp(text + count - length, end, length) == 0;
}

static nghttp2_nv field(const char *name, const char *value) {
  uint8_t flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
  return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), flags};
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t limit, uint32_t *flags,
                         nghttp2_data_source *source, void *user) {
  (void)user;
  struct stream *stream = source->ptr;
  struct bytes message = stream->answer->message, end = stream->answer->end;
  size_t count = 0;
  while (stream->messages > 0 && count < limit) {
    size_t part = message.count - stream->offset;
    if (part > limit - count) part = limit - count;
    memcpy(buffer + count, message.data + stream->offset, part);
    count += part;
    stream->offset += part;
    if (stream->offset < message.count) break;
    stream->offset = 0;
    stream->messages--;
    if (stream->is_framed_each) break;
  }
  bool is_last = stream->messages == 0 && (stream->kind != bidi || stream->is_request_complete);
  if (!is_last) {
    if (count > 0) return (ssize_t)count;
    stream->is_deferred = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  if (!stream->is_framed_each || count == 0) {
    size_t part = end.count - stream->end_offset;
    if (part > limit - count) part = limit - count;
    memcpy(buffer + count, end.data + stream->end_offset, part);
    count += part;
    stream->end_offset += part;
  }
  if (stream->end_offset < end.count) return (ssize_t)count;
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (stream->answer->has_http_trailers) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_nv trailer = field("grpc-status", "0");
    nghttp2_submit_trailer(session, id, &trailer, 1);
  }
  return (ssize_t)count;
}

static void respond(nghttp2_session *session, int32_t id, struct stream *stream) {
  if (stream->has_responded || stream->answer == NULL) return;
  stream->has_responded = true;
  const char *type = stream->answer->content_type, *encoding = stream->answer->encoding_header;
  nghttp2_nv fields[] = {
      field(":status", "200"),
      field("content-type", type),
      field(encoding != NULL ? encoding : "", "gzip"),
  };
  nghttp2_data_provider body = {{.ptr = stream}, read_body};
  nghttp2_submit_response(session, id, fields, encoding != NULL ? 3 : 2, &body);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
  (void)user;
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  struct stream *stream = calloc(1, sizeof *stream);
  stream->messages = 1;
  nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
  return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_count,
                     const uint8_t *value, size_t value_count, uint8_t flags, void *user) {
  (void)flags;
  struct http2 *http2 = user;
  struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  if (stream == NULL) return 0;
  if (name_count == 5 && memcmp(name, ":path", 5) == 0) {
    if (ends_with(value, value_count, "/ServerStream")) stream->kind = server_stream;
    if (ends_with(value, value_count, "/ClientStream")) stream->kind = client_stream;
    if (ends_with(value, value_count, "/Bidi")) stream->kind = bidi, stream->messages = 0;
  } else if (name_count == 12 && memcmp(name, "content-type", 12) == 0) {
    enum format format = format_of((const char *)value, value_count);
    if (format < format_count) stream->answer = &http2->connection->answers[format];
  } else if (name_count == 10 && memcmp(name, "x-messages", 10) == 0) {
    stream->messages = strtoul((const char *)value, NULL, 10);
  } else if (name_count == 8 && memcmp(name, "x-frames", 8) == 0) {
    stream->is_framed_each = true;
  }
  return 0;
}

// Counts the messages of a bidirectional stream; each is answered by one.
static size_t count_messages(struct stream *stream, const uint8_t *data, size_t count) {
  size_t messages = 0;
  while (count > 0) {
    if (stream->missing > 0) {
      size_t part = stream->missing < count ? stream->missing : count;
      stream->missing -= part, data += part, count -= part;
      if (stream->missing == 0) messages++;
      continue;
    }
    stream->prefix[stream->prefix_count++] = *data++;
    count--;
    if (stream->prefix_count < 5) continue;
    stream->prefix_count = 0;
    const uint8_t *p = stream->prefix;
    stream->missing = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    if (stream->missing == 0) messages++;
  }
  return messages;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t count,
                   void *user) {
  (void)flags, (void)user;
  struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
  if (stream == NULL || stream->kind != bidi) return 0;
  stream->messages += count_messages(stream, data, count);
  if (stream->messages > 0 && stream->is_deferred) {
    stream->is_deferred = false;
    nghttp2_session_resume_data(session, id);
  }
  return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
  (void)user;
  if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
  struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  if (stream == NULL) return 0;
  if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
    stream->is_request_complete = true;
    if (stream->is_deferred) {
      stream->is_deferred = false;
      nghttp2_session_resume_data(session, frame->hd.stream_id);
    }
    respond(session, frame->hd.stream_id, stream);
  } else if (stream->kind == bidi) {
    respond(session, frame->hd.stream_id, stream);
  }
  return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user) {
  (void)error, (void)user;
  free(nghttp2_session_get_stream_user_data(session, id));
  nghttp2_session_set_stream_user_data(session, id, NULL);
  return 0;
}

struct http2 *http2_new(struct connection *connection) {
  struct http2 *http2 = calloc(1, sizeof *http2);
  http2->connection = connection;
  nghttp2_session_callbacks *callbacks;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) abort();
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  if (nghttp2_session_server_new(&http2->session, callbacks, http2) != 0) abort();
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100000},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 16 << 20},
  };
  nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, settings, 2);
  nghttp2_session_set_local_window_size(http2->session, NGHTTP2_FLAG_NONE, 0, 64 << 20);
  return http2;
}

void http2_free(struct http2 *http2) {
  if (http2 == NULL) return;
  nghttp2_session_del(http2->session);
  free(http2);
}

bool http2_receive(struct http2 *http2, const uint8_t *data, size_t count) {
  return nghttp2_session_mem_recv(http2->session, data, count) == (ssize_t)count;
}

bool http2_fill(struct http2 *http2) {
  while (connection_waiting(http2->connection) < output_limit) {
    const uint8_t *data;
    ssize_t count = nghttp2_session_mem_send(http2->session, &data);
    if (count < 0) return false;
    if (count == 0) break;
    connection_append(http2->connection, data, (size_t)count);
  }
  return nghttp2_session_want_read(http2->session) || nghttp2_session_want_write(http2->session) ||
         connection_waiting(http2->connection) > 0;
}
