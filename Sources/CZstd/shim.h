#ifndef CONNECT_CZSTD_SHIM_H
#define CONNECT_CZSTD_SHIM_H

#if !__has_include(<zstd.h>)
#error "libzstd is missing; on Debian: apt-get install libzstd-dev"
#else

#include <zstd.h>

#endif
#endif
