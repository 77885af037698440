/* Ending everything that commands have started, without a process of its own. */
#ifndef QUIET_H
#define QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* Begins it; REPLY comes on the channel when all of it is gone. */
void quiet_start(uint32_t channel);

/* Nobody waits for the answer any more. */
void quiet_forget(void);

bool quiet_pending(void);
void quiet_tick(void);

#endif
