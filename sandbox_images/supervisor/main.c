/* The supervisor: one loop over frames, pipes, keepers and clocks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "exec.h"
#include "files.h"
#include "frame.h"
#include "job.h"
#include "quiet.h"
#include "users.h"
#include "wire.h"

enum special { AT_STDIN = MAX_JOBS * PORTS, AT_STDOUT, AT_SIGNAL };

enum { END_MS = 5000, QUIET_MS = 20 };

static int epoll;
static int signals;
static int64_t heard_at;
static bool reading = true, writing;

static void watch(int fd, uint32_t events, uint32_t special)
{
    struct epoll_event event = {.events = events, .data.u32 = special};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* False when there is no child left. */
static bool reap(void)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        jobs_reaped(pid);
    return pid == 0;
}

/* A plain process has no kernel that ends its children with it. */
static void end_children(void)
{
    const struct keeper_command kill_all = {.order = O_KILL, .grace_ms = 0};
    int64_t until = now_ms() + END_MS;
    for (int i = 0; i < MAX_JOBS; i++) {
        if (jobs[i].kind == JOB_EXEC && jobs[i].fd[PORT_CTL] >= 0)
            send(jobs[i].fd[PORT_CTL], &kill_all, sizeof kill_all, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (jobs[i].kind == JOB_FILE)
            file_stop(&jobs[i]);
    }
    while (now_ms() < until && reap()) {
        kill_orphans();
        usleep(1000);
    }
}

_Noreturn static void end(int code)
{
    if (!settings.init)
        end_children();
    _exit(code);
}

/* What there is no room to answer waits in the input's buffer. */
static void handle_frames(void)
{
    struct frame frame;
    while (frames_room_for_answers() && frames_next(&frame))
        if (!control_handle(&frame))
            end(0);
}

static void read_frames(void)
{
    enum input got = frames_read();
    if (got == INPUT_END)
        end(0);
    if (got == INPUT_SOME)
        heard_at = now_ms();
    handle_frames();
}

static void hear(struct job *job)
{
    if (job->kind == JOB_EXEC)
        exec_heard(job);
    else
        file_heard(job);
}

static void settle(struct job *job)
{
    if (job->kind == JOB_EXEC)
        exec_settle(job);
    else if (job->kind == JOB_FILE)
        file_settle(job);
}

static void job_event(uint32_t data)
{
    struct job *job = &jobs[data / PORTS];
    enum port port = (enum port)(data % PORTS);
    if (job->kind == JOB_FREE || job->fd[port] < 0)
        return; /* ended earlier in the same round */
    if (port == PORT_CTL) {
        hear(job);
    } else if (port == PORT_IN) {
        job_unwatch(job, PORT_IN);
        job_feed(job);
    } else {
        job_pump(job);
        settle(job);
    }
}

static void drain_signals(void)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGHUP)
            end(0);
    reap();
}

static int next_wait(void)
{
    int64_t next = heard_at + orphan_ms;
    for (int i = 0; i < MAX_JOBS; i++) {
        const struct job *job = &jobs[i];
        if (job->kind == JOB_FREE)
            continue;
        int64_t at = job->kind == JOB_EXEC ? exec_next_tick(job) : job->overdue_at;
        next = at < next ? at : next;
    }
    int64_t wait = next - now_ms();
    if (quiet_pending() && wait > QUIET_MS)
        wait = QUIET_MS;
    return wait < 0 ? 0 : wait > 60000 ? 60000 : (int)wait;
}

static void tick(void)
{
    int64_t now = now_ms();
    for (int i = 0; i < MAX_JOBS; i++) {
        if (jobs[i].kind == JOB_EXEC)
            exec_tick(&jobs[i], now);
        else if (jobs[i].kind == JOB_FILE)
            file_tick(&jobs[i], now);
    }
    quiet_tick();
    if (now < heard_at + orphan_ms)
        return;
    read_frames(); /* what came while we slept counts */
    if (now_ms() >= heard_at + orphan_ms)
        end(1);
}

/* Interest in fd 0 and fd 1 follows what the buffers can take and hold. */
static void adjust(void)
{
    if (!frames_flush())
        end(0);
    if (!reading) {
        handle_frames();
        if (!frames_flush())
            end(0);
    }
    if (frames_turned_away())
        jobs_resume();
    bool want = frames_pending();
    if (want != writing) {
        struct epoll_event event = {.events = EPOLLOUT, .data.u32 = AT_STDOUT};
        epoll_ctl(epoll, want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, 1, &event);
        writing = want;
    }
    want = frames_room_for_answers();
    if (want != reading) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = AT_STDIN};
        epoll_ctl(epoll, want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, 0, &event);
        reading = want;
    }
}

_Noreturn static void run(void)
{
    struct epoll_event events[64];
    for (;;) {
        int count = epoll_wait(epoll, events, 64, next_wait());
        for (int i = 0; i < count; i++) {
            uint32_t data = events[i].data.u32;
            if (data == AT_STDIN)
                read_frames();
            else if (data == AT_SIGNAL)
                drain_signals();
            else if (data < AT_STDIN)
                job_event(data);
        }
        tick();
        adjust();
    }
}

static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (getpid() != 1) {
        /* Nobody may end PID 1 by a signal; a plain process is ended in order. */
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
}

static unsigned long number(const char *text)
{
    char *rest;
    errno = 0;
    unsigned long value = text ? strtoul(text, &rest, 10) : 0;
    if (!text || errno || *rest || rest == text || value > 0x7fffffff) {
        fprintf(stderr, "harness-supervisor: `%s` is not a number\n", text ? text : "");
        exit(2);
    }
    return value;
}

static bool options(char **argv)
{
    bool one_user = false;
    for (char **at = argv + 1; *at; at++) {
        if (strcmp(*at, "--one-user") == 0) {
            one_user = true;
        } else if (strcmp(*at, "--uid") == 0) {
            settings.uid = (uid_t)number(*++at);
        } else if (strcmp(*at, "--gid") == 0) {
            settings.gid = (gid_t)number(*++at);
        } else if (strcmp(*at, "--orphan-ms") == 0) {
            orphan_ms = (int64_t)number(*++at);
        } else {
            fprintf(stderr, "harness-supervisor: unknown option `%s`\n", *at);
            exit(2);
        }
    }
    return one_user;
}

int main(int argc, char **argv)
{
    (void)argc;
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            return 2;
    users_start(options(argv));
    block_signals();
    fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
    for (int fd = 0; fd < 3; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0 || signals < 0 || settings.null_fd < 0) {
        fprintf(stderr, "harness-supervisor: cannot start: %s\n", strerror(errno));
        return 1;
    }
    jobs_start(epoll);
    watch(0, EPOLLIN, AT_STDIN);
    watch(signals, EPOLLIN, AT_SIGNAL);
    heard_at = now_ms();
    run();
}
