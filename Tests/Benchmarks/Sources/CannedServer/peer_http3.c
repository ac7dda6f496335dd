// The HTTP/3 of the server's half that the tests have.
#include "../../../CQUICPeer/quic_peer_http.c"
