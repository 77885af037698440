/* The command's own process, from fork to exec. */
#ifndef SPAWN_H
#define SPAWN_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_STRINGS = 8192 };

struct exec_request {
    uint32_t flags, timeout_ms, grace_ms;
    char *cwd;
    char *argv[MAX_STRINGS + 1];
    char *envp[MAX_STRINGS + 1];
};

extern struct exec_request exec_request;

/* Fills exec_request, whose strings stay in `data`. False when it is malformed. */
bool exec_parse(uint8_t *data, uint32_t length);

/* Replaces this process by the request's program, or ends it with 126 or 127. */
_Noreturn void spawn_command(int in, int out, int err);

/* Closes everything from 3 on but what is listed (ascending, ended by -1). */
void close_others(const int *kept);

#endif
