#ifndef CONNECT_CSNAPPY_SHIM_H
#define CONNECT_CSNAPPY_SHIM_H

#if !__has_include(<snappy-c.h>)
#error "libsnappy is missing; on Debian: apt-get install libsnappy-dev"
#else

#include <snappy-c.h>

#endif
#endif
