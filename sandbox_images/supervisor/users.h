/* Who the supervisor is, who the workload is, and what keeps them apart. */
#ifndef USERS_H
#define USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct settings {
    uid_t uid; /* the workload's */
    gid_t gid;
    bool one_user;
    bool init;      /* we are PID 1 of a namespace */
    bool subreaper; /* orphans of an exec come back to its keeper */
    int oom_fd;     /* the cgroup's OOM counter, or -1 */
    int null_fd;    /* /dev/null */
    uint8_t boot_id[16];
};

extern struct settings settings;

/* Decides between the two forms, makes this process non-dumpable, probes what the kernel has. */
void users_start(bool want_one_user);

/* For good: before foreign code runs. False when it could not be done. */
bool users_drop(void);

/* For a file operation: only the effective ids change, so that the workload may not signal us. */
bool users_act(void);

/* The kernel kills the workload first when memory is short. */
void users_first_to_die(void);

/* OOM kills in this box so far, or 0 where nothing counts them. */
uint64_t oom_kills(void);

#endif
