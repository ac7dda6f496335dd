#ifndef CONNECT_CZLIB_SHIM_H
#define CONNECT_CZLIB_SHIM_H

#include <zlib.h>

#endif
