#ifndef CONNECT_CZLIB_SHIM_H
#define CONNECT_CZLIB_SHIM_H

#if !__has_include(<zlib.h>)
#error "zlib is missing; on Debian: apt-get install zlib1g-dev"
#else

#include <zlib.h>

#endif
#endif
