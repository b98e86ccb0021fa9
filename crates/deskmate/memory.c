// The allocator keeps what is freed for a second before the system gets it back. A server that idles after a crowd, or
// that works through a long plan, then holds twice what it uses. It can be told otherwise only before the program begins,
// or from C. MIMALLOC_PURGE_DELAY in the environment still wins.
#include <mimalloc.h>

#define MILLISECONDS 10

__attribute__((constructor)) static void give_back_soon(void) { mi_option_set_default(mi_option_purge_delay, MILLISECONDS); }
