#ifndef CONNECT_CNGHTTP2_SHIM_H
#define CONNECT_CNGHTTP2_SHIM_H

#if !__has_include(<nghttp2/nghttp2.h>)
#error "libnghttp2 is missing; on Debian: apt-get install libnghttp2-dev"
#else

#include <nghttp2/nghttp2.h>
#include <string.h>

// Accepts fields whose values begin or end with a space, which servers of gRPC send: percent-encoding leaves spaces
// as they are. Versions before 1.50 always do.
static inline void connect_nghttp2_option_allow_spaces_around_values(nghttp2_option *option) {
#if NGHTTP2_VERSION_NUM >= 0x013200
  nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
#else
  (void)option;
#endif
}

#endif
#endif
