/* What the controller asks for: lease, requests, credits. */
#ifndef CONTROL_H
#define CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

/* Without a frame for so long the supervisor ends itself. */
extern int64_t orphan_ms;

/* Does what a frame says; false when it says to end. Frames before the first LEASE are ignored. */
bool control_handle(const struct frame *frame);

#endif
