#ifndef CONNECT_CNGHTTP3_SHIM_H
#define CONNECT_CNGHTTP3_SHIM_H

#if !__has_include(<nghttp3/nghttp3.h>)
#error "libnghttp3 is missing; on Debian: apt-get install libnghttp3-dev"
#else

#include <nghttp3/nghttp3.h>

// What the header has as macros, which Swift does not see.

static inline void connect_nghttp3_settings_default(nghttp3_settings *settings) {
  nghttp3_settings_default(settings);
}

static inline int connect_nghttp3_client_new(
    nghttp3_conn **connection, const nghttp3_callbacks *callbacks, const nghttp3_settings *settings, void *user_data) {
  return nghttp3_conn_client_new(connection, callbacks, settings, nghttp3_mem_default(), user_data);
}

static inline int connect_nghttp3_server_new(
    nghttp3_conn **connection, const nghttp3_callbacks *callbacks, const nghttp3_settings *settings, void *user_data) {
  return nghttp3_conn_server_new(connection, callbacks, settings, nghttp3_mem_default(), user_data);
}

#endif
#endif
