#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_PROCESSES = 32768 };

enum mark { UNKNOWN, INSIDE, OUTSIDE };

struct process {
    pid_t pid, parent;
    uint64_t started;
    char state;
    uint8_t mark;
};

struct directory_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static struct process table[MAX_PROCESSES];
static int found;

static bool read_process(pid_t pid, struct process *process)
{
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = 0;
    char *rest = strrchr(text, ')'); /* the name before it may hold anything */
    if (!rest || strlen(rest) < 5)
        return false;
    rest += 2;
    process->pid = pid;
    process->state = *rest;
    rest += 2;
    process->parent = (pid_t)strtol(rest, &rest, 10);
    for (int skip = 0; skip < 17 && rest; skip++) {
        rest = strchr(rest + 1, ' ');
    }
    process->started = rest ? strtoull(rest, NULL, 10) : 0;
    process->mark = UNKNOWN;
    return true;
}

static void read_all(void)
{
    static union {
        char bytes[32768];
        uint64_t aligned;
    } buffer;
    found = 0;
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    for (;;) {
        long got = syscall(SYS_getdents64, fd, buffer.bytes, sizeof buffer.bytes);
        if (got <= 0)
            break;
        for (long at = 0; at < got;) {
            const struct directory_entry *entry = (const void *)(buffer.bytes + at);
            at += entry->length;
            if (entry->name[0] < '1' || entry->name[0] > '9' || found == MAX_PROCESSES)
                continue;
            if (read_process((pid_t)atol(entry->name), &table[found]))
                found++;
        }
    }
    close(fd);
}

static int by_pid(const void *left, const void *right)
{
    const struct process *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static struct process *lookup(pid_t pid)
{
    struct process key = {.pid = pid};
    return bsearch(&key, table, (size_t)found, sizeof *table, by_pid);
}

static void sort_table(void)
{
    for (int i = 1; i < found; i++)
        if (table[i].pid < table[i - 1].pid) { /* /proc lists in order, nearly always */
            qsort(table, (size_t)found, sizeof *table, by_pid);
            return;
        }
}

static void mark_tree(pid_t root, const pid_t *spared)
{
    struct process *top = lookup(root);
    if (top)
        top->mark = INSIDE;
    for (const pid_t *pid = spared; pid && *pid; pid++) {
        struct process *known = lookup(*pid);
        if (known)
            known->mark = OUTSIDE;
    }
    for (int i = 0; i < found; i++) {
        struct process *at = &table[i];
        int hops = 0;
        while (at && at->mark == UNKNOWN && hops++ < found)
            at = lookup(at->parent);
        uint8_t mark = at && at->mark == INSIDE ? INSIDE : OUTSIDE;
        for (at = &table[i]; at && at->mark == UNKNOWN; at = lookup(at->parent))
            at->mark = mark;
    }
}

/* A pid may be another process by now: the start time tells, and a pidfd keeps hold of it. */
static void signal_process(const struct process *process, int signal)
{
    struct process now;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    int refused = fd < 0 ? errno : 0;
    if (!read_process(process->pid, &now) || now.started != process->started) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (fd < 0) {
        /* Without a pidfd (an old kernel, a seccomp filter, no descriptor left) the moment between
         * the look and the signal stays open; a process that lives on would be worse. */
        if (refused != ESRCH)
            kill(process->pid, signal);
        return;
    }
    syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
    close(fd);
}

int tree_signal(pid_t root, const pid_t *spared, int signal)
{
    int count = 0;
    read_all();
    sort_table();
    mark_tree(root, spared);
    for (int i = 0; i < found; i++) {
        const struct process *process = &table[i];
        if (process->mark != INSIDE || process->pid == root)
            continue;
        /* A zombie may be the leader of threads that run on: it gets the signal all the same. */
        count += process->state != 'Z' && process->state != 'X';
        if (signal)
            signal_process(process, signal);
    }
    return count;
}
