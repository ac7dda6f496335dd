#ifndef CONNECT_CPROTOBUFC_SHIM_H
#define CONNECT_CPROTOBUFC_SHIM_H

#if !__has_include(<protobuf-c/protobuf-c.h>)
#error "libprotobuf-c is missing; on Debian: apt-get install libprotobuf-c-dev"
#else

#include <protobuf-c/protobuf-c.h>

#endif
#endif
