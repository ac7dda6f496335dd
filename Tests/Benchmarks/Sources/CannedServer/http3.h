// HTTP/3 for all clients, over one UDP socket.
#ifndef HTTP3_H
#define HTTP3_H

#include <stdint.h>

#include "answers.h"

struct http3;

// Binds the port of 127.0.0.1; null if that is taken. The files are PEM.
struct http3 *http3_new(int port, const char *certificate, const char *key, struct answer *answers);
int http3_fd(const struct http3 *http3);
// Reads what has come, and answers.
void http3_receive(struct http3 *http3);
// In how many nanoseconds http3_expire is due; -1 for never.
int64_t http3_wait(const struct http3 *http3);
void http3_expire(struct http3 *http3);

#endif
