/* One process beside each command: parent of all its orphans, and their killer. */
#ifndef KEEPER_H
#define KEEPER_H

#include <stdbool.h>
#include <stdint.h>

enum keeper_event {
    K_MAIN_DONE = 1, /* the command's own process was reaped; others live */
    K_SETTLED,       /* nothing lives, or what lives may live on */
    K_STORM,         /* killing does not win against forking */
};

struct keeper_report {
    uint8_t event;
    bool main_reaped;
    int status; /* as wait4 gives it */
    uint32_t left;
    uint64_t user_us, system_us, max_rss;
};

enum keeper_order {
    O_KILL = 1, /* TERM, then KILL after grace_ms, until nothing is left */
    O_FINISH,   /* settle: what still runs lives on */
};

struct keeper_command {
    uint32_t order;
    uint32_t grace_ms;
};

/* Descriptors of a command; `output` are the reading ends, kept to drain what lives on. */
struct keeper_pipes {
    int ctl;
    int in, out, err; /* the command's ends */
    int output[2];    /* or -1 */
};

/* Never returns. Runs in the child of a fork. */
_Noreturn void keeper_run(const struct keeper_pipes *pipes);

#endif
