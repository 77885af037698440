/* File operations: each in a short-lived process that acts as the workload's user. */
#ifndef FILES_H
#define FILES_H

#include <stdint.h>

#include "job.h"

/* Starts an operation; answers REFUSED when it cannot be started. */
void file_start(uint32_t channel, const uint8_t *data, uint32_t length);

/* Something came from the operation's process, or it is gone. */
void file_heard(struct job *job);

/* Ends it early; what it began to write is removed. */
void file_stop(struct job *job);
void file_tick(struct job *job, int64_t now);

/* Sends REPLY when answer and data are complete. */
void file_settle(struct job *job);

#endif
