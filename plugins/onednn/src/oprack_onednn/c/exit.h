/* The end of the process, for functions that Python calls without its lock; see exit.c. */

#include <stdint.h>

/* To be called around all that a native call does. Calls may lie in each other. */
void exit_enter(void);
void exit_leave(void);

/* Whether this process was forked while another thread was in a native call. */
extern int exit_lost;
