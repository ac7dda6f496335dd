#ifndef CONNECT_CBROTLI_SHIM_H
#define CONNECT_CBROTLI_SHIM_H

#if !__has_include(<brotli/decode.h>)
#error "libbrotli is missing; on Debian: apt-get install libbrotli-dev"
#else

#include <brotli/decode.h>
#include <brotli/encode.h>

#endif
#endif
