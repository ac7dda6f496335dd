#ifndef CONNECT_CSNAPPY_SHIM_H
#define CONNECT_CSNAPPY_SHIM_H

#include <snappy-c.h>

#endif
