/* Commands as PID 1 sees them: start, deadlines, completion, exit. */
#ifndef EXEC_H
#define EXEC_H

#include <stdint.h>

#include "job.h"

/* Starts what `data` asks for; answers STARTED or REFUSED. */
void exec_start(uint32_t channel, uint8_t *data, uint32_t length);

/* Something came from the keeper, or it is gone. */
void exec_heard(struct job *job);

/* The whole tree is to end, for `reason`. */
void exec_stop(struct job *job, uint8_t reason);

/* The same at once, and for what a finished command left. */
void exec_quiet(struct job *job);

/* Deadlines of one job. */
void exec_tick(struct job *job, int64_t now);
int64_t exec_next_tick(const struct job *job);

/* Sends EXIT when everything it waits for has come. */
void exec_settle(struct job *job);

void exec_refuse(uint32_t channel, uint8_t code, const char *why);

/* Ends the processes that lost their keeper; the number still there. */
int kill_orphans(void);

#endif
