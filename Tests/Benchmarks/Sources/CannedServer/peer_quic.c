// The server's half of a QUIC connection that the tests have.
#include "../../../CQUICPeer/quic_peer.c"
