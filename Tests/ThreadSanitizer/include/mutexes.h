#ifndef CONNECT_MUTEXES_H
#define CONNECT_MUTEXES_H

// There is nothing to call: that the file is linked is enough.

#endif
