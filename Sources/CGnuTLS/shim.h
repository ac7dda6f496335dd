#ifndef CONNECT_CGNUTLS_SHIM_H
#define CONNECT_CGNUTLS_SHIM_H

#if !__has_include(<gnutls/gnutls.h>)
#error "GnuTLS is missing; on Debian: apt-get install libgnutls28-dev"
#else

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

// A session of a client, for QUIC: there is no END_OF_EARLY_DATA (RFC 9001, section 8.3), and the client's certificate is shown
// whichever authorities the server names. It offers early data if `has_ticket`, which gnutls_session_set_data has to follow.
static inline int connect_gnutls_client_init(gnutls_session_t *session, int has_ticket) {
  unsigned flags = GNUTLS_CLIENT | GNUTLS_NO_END_OF_EARLY_DATA | GNUTLS_FORCE_CLIENT_CERT;
  return gnutls_init(session, has_ticket ? flags | GNUTLS_ENABLE_EARLY_DATA : flags);
}

// Whether the server has accepted early data. Known when the handshake is complete.
static inline int connect_gnutls_accepted_early_data(gnutls_session_t session) {
  return (gnutls_session_get_flags(session) & GNUTLS_SFLAGS_EARLY_DATA) != 0;
}

static inline int connect_gnutls_set_alpn(gnutls_session_t session, const char *name, unsigned length) {
  gnutls_datum_t protocol = {(unsigned char *)name, length};
  return gnutls_alpn_set_protocols(session, &protocol, 1, GNUTLS_ALPN_MANDATORY);
}

#endif
#endif
