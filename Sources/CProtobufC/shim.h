#ifndef CONNECT_CPROTOBUFC_SHIM_H
#define CONNECT_CPROTOBUFC_SHIM_H

#include <protobuf-c/protobuf-c.h>

#endif
