/* Processes below a process, however they left its group or session. */
#ifndef TREE_H
#define TREE_H

#include <sys/types.h>

/* Sends a signal to every live descendant of `root`, except those at and below one of `spared`
 * (ended by 0, or NULL); the number of processes found. Signal 0 only counts. */
int tree_signal(pid_t root, const pid_t *spared, int signal);

#endif
