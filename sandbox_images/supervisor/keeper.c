#include "keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame.h"
#include "job.h"
#include "spawn.h"
#include "tree.h"
#include "users.h"
#include "wire.h"

enum { ROUND_MS = 20 };

static struct keeper_report report;
static pid_t main_pid;
static int ctl;
static bool settled, draining, killing, killed_once;
static int64_t kill_at, round_at;
static int rounds;

static void on_child(int number) { (void)number; }

static void tell(enum keeper_event event)
{
    report.event = (uint8_t)event;
    while (send(ctl, &report, sizeof report, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

static void add_usage(const struct rusage *usage)
{
    report.user_us += (uint64_t)usage->ru_utime.tv_sec * 1000000u + (uint64_t)usage->ru_utime.tv_usec;
    report.system_us += (uint64_t)usage->ru_stime.tv_sec * 1000000u + (uint64_t)usage->ru_stime.tv_usec;
    uint64_t rss = (uint64_t)usage->ru_maxrss * 1024u;
    if (rss > report.max_rss)
        report.max_rss = rss;
}

/* Reaps what has ended. When nothing is left this process has no more to do. */
static void reap(void)
{
    struct rusage usage;
    int status;
    bool main_now = false;
    for (;;) {
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0) {
            if (!settled)
                tell(K_SETTLED);
            _exit(0);
        }
        if (pid == 0)
            break;
        add_usage(&usage);
        if (pid == main_pid) {
            report.status = status;
            report.main_reaped = main_now = true;
            main_pid = 0;
        }
    }
    if (main_now && !settled)
        tell(K_MAIN_DONE);
}

static void begin_kill(uint32_t grace_ms)
{
    int64_t now = now_ms();
    if (killing && now + grace_ms >= kill_at)
        return;
    killing = true;
    kill_at = round_at = now + grace_ms;
    if (grace_ms == 0)
        return;
    tree_signal(getpid(), NULL, SIGTERM);
    tree_signal(getpid(), NULL, SIGCONT); /* who is stopped could not end itself */
}

static void kill_round(void)
{
    pid_t self = getpid();
    /* Stopped processes cannot fork, so the second pass meets few new ones. */
    if (killed_once)
        tree_signal(self, NULL, SIGSTOP);
    tree_signal(self, NULL, SIGKILL);
    killed_once = true;
    if (++rounds == 2)
        tell(K_STORM);
    round_at = now_ms() + ROUND_MS;
}

static void obey(void)
{
    struct keeper_command command;
    ssize_t got = recv(ctl, &command, sizeof command, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got != sizeof command) {
        /* The supervisor is gone: so is all that it started. */
        settled = true;
        begin_kill(0);
        close(ctl);
        ctl = -1;
        return;
    }
    if (command.order == O_KILL) {
        begin_kill(command.grace_ms);
    } else if (command.order == O_FINISH && !settled) {
        report.left = (uint32_t)tree_signal(getpid(), NULL, 0);
        settled = draining = true;
        tell(K_SETTLED);
    }
}

/* What lives on may go on printing; without a reader it would die of SIGPIPE. */
static void drain(int fd)
{
    char bytes[16384];
    ssize_t ignored = read(fd, bytes, sizeof bytes);
    (void)ignored;
}

static int wait_ms(void)
{
    if (!killing)
        return -1;
    int64_t left = round_at - now_ms();
    return left < 0 ? 0 : (int)left;
}

_Noreturn static void keep(struct keeper_pipes *pipes, const sigset_t *open_mask)
{
    for (;;) {
        reap();
        int wait = wait_ms();
        if (wait == 0) {
            kill_round();
            continue;
        }
        struct pollfd polled[3] = {
            {.fd = ctl, .events = POLLIN},
            {.fd = draining ? pipes->output[0] : -1, .events = POLLIN},
            {.fd = draining ? pipes->output[1] : -1, .events = POLLIN},
        };
        struct timespec time = {.tv_sec = wait / 1000, .tv_nsec = wait % 1000 * 1000000L};
        if (ppoll(polled, 3, wait < 0 ? NULL : &time, open_mask) <= 0)
            continue;
        if (polled[0].revents)
            obey();
        for (int i = 1; i < 3; i++) {
            if (polled[i].revents & POLLIN)
                drain(polled[i].fd);
            if (polled[i].revents & (POLLHUP | POLLERR))
                pipes->output[i - 1] = -1;
        }
    }
}

static void sort_ascending(int *values, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && values[j] < values[j - 1]; j--) {
            int swap = values[j];
            values[j] = values[j - 1];
            values[j - 1] = swap;
        }
}

static void keep_only(const struct keeper_pipes *pipes)
{
    int all[] = {pipes->ctl, pipes->in, pipes->out, pipes->err, pipes->output[0], pipes->output[1]};
    int kept[8], count = 0;
    sort_ascending(all, 6);
    for (int i = 0; i < 6; i++)
        if (all[i] > 2)
            kept[count++] = all[i];
    kept[count] = -1;
    for (int fd = 0; fd < 3; fd++)
        dup2(settings.null_fd, fd);
    close_others(kept);
}

_Noreturn void keeper_run(const struct keeper_pipes *given)
{
    static struct keeper_pipes pipes;
    struct sigaction action = {.sa_handler = on_child};
    sigset_t child, before;
    pipes = *given;
    ctl = pipes.ctl;
    if (pipes.in < 0)
        pipes.in = settings.null_fd;
    keep_only(&pipes);
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &child, NULL);
    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&before);
    main_pid = fork();
    if (main_pid == 0)
        spawn_command(pipes.in, pipes.out, pipes.err);
    if (main_pid < 0) {
        dprintf(pipes.err, NO_ROOM_TEXT "\n");
        report.status = 126 << 8;
        report.main_reaped = true;
        tell(K_SETTLED);
        _exit(0);
    }
    close(pipes.in);
    close(pipes.out);
    if (pipes.err != pipes.out)
        close(pipes.err);
    keep(&pipes, &before);
}
