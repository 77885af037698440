/* What runs: a fixed table of commands and file operations, and their descriptors. */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper.h"

enum { MAX_JOBS = 192, FILE_PLACES = 16, MAX_ANSWER = 16 * 1024 };

enum job_kind { JOB_FREE, JOB_EXEC, JOB_FILE };

enum port { PORT_CTL, PORT_OUT, PORT_ERR, PORT_IN, PORTS };

static const int64_t NEVER = INT64_MAX;

struct job {
    enum job_kind kind;
    uint32_t channel;
    pid_t pid; /* the keeper, or the process of a file operation */
    int fd[PORTS];
    bool watched[PORTS];
    int64_t credit;
    uint32_t in_start, in_length, in_returned;
    bool in_ended, in_used;
    /* a command's life: main process gone, tree settled, EXIT sent and background left */
    bool main_done, settled, lingering;
    bool finishing, killing, keeper_gone, kill_left, quieted;
    bool unwanted; /* nobody wants the rest of its output */
    uint8_t reason;
    uint32_t grace_ms;
    int64_t timeout_at, idle_at, hard_at, storm_at, overdue_at; /* milliseconds, monotonic */
    uint64_t started_us, ended_us, oom_before;
    uint64_t bytes[2];
    struct keeper_report report;
    uint32_t answer_length; /* a file operation's */
};

extern struct job jobs[MAX_JOBS];
extern int64_t total_credit;

uint64_t now_us(void);
int64_t now_ms(void);

void jobs_start(int epoll_fd);
struct job *job_new(enum job_kind kind, uint32_t channel);
struct job *job_on(uint32_t channel);
void job_free(struct job *job);
void job_watch(struct job *job, enum port port, uint32_t events);
void job_unwatch(struct job *job, enum port port);
void job_close(struct job *job, enum port port);
/* That process is no more: its number may be another's soon, and is not signalled again. */
void jobs_reaped(pid_t pid);
/* Whether `spare` descriptors are left after a new one. Commands leave some for files, and both
 * for what must always go on: looking at processes and ending them. */
enum { SPARE_BY_FILES = 8, SPARE_BY_COMMANDS = 40 };
bool descriptor_spare(int fd, int spare);
bool job_output_open(const struct job *job);

/* Sends what the pipes hold and the credits allow. */
void job_pump(struct job *job);
/* After a credit: what had to wait is watched again. */
void job_resume(struct job *job);
void jobs_resume(void);
/* Whether output is waiting for a credit. */
bool job_held_back(const struct job *job);

/* Takes input bytes; false when the controller sent more than it may. */
bool job_input(struct job *job, const uint8_t *data, uint32_t length);
void job_input_end(struct job *job);
void job_feed(struct job *job);

uint8_t *job_answer(struct job *job);

#endif
