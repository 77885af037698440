/* Real paths as the box sees them, many at a time. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "operation.h"
#include "wire.h"

enum { MAX_LINKS = 40, ROOM = 3 * NAME_LIMIT };

static const char unresolved[] = "/proc/unresolved";

static char given[NAME_LIMIT + 1];
static char done[ROOM];   /* resolved so far, "" being the root */
static char todo[ROOM];   /* what is left, without a leading slash */
static char scratch[ROOM];

static bool join(const char *name, size_t length)
{
    size_t at = strlen(done);
    if (at + length + 2 > NAME_LIMIT)
        return false;
    done[at] = '/';
    memcpy(done + at + 1, name, length);
    done[at + 1 + length] = 0;
    return true;
}

static void pop(void)
{
    char *slash = strrchr(done, '/');
    if (slash)
        *slash = 0;
}

/* Takes the next component from `todo`. */
static bool next(char name[256], bool *fits)
{
    size_t skip = strspn(todo, "/");
    memmove(todo, todo + skip, strlen(todo + skip) + 1);
    size_t length = strcspn(todo, "/");
    *fits = length < 256;
    if (length == 0 || !*fits)
        return false;
    memcpy(name, todo, length);
    name[length] = 0;
    memmove(todo, todo + length, strlen(todo + length) + 1);
    return true;
}

/* Links of /proc lead to a place that depends on who looks. A standard stream at the end of a
 * path is a command's own pipe; everything else there stays unresolved. */
static bool in_proc(void)
{
    struct statfs system;
    return statfs(done[0] ? done : "/", &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

static bool standard_stream(void)
{
    size_t skip = strspn(todo, "/");
    return strcmp(done, "/proc") == 0
        && (strcmp(todo + skip, "fd/0") == 0 || strcmp(todo + skip, "fd/1") == 0
            || strcmp(todo + skip, "fd/2") == 0);
}

static bool follow(const char *target, size_t length)
{
    size_t left = strlen(todo);
    if (length == 0 || length + left + 2 > ROOM)
        return false;
    memcpy(scratch, target, length);
    scratch[length] = 0;
    if (left) {
        scratch[length] = '/';
        memcpy(scratch + length + 1, todo, left + 1);
    }
    memcpy(todo, scratch, strlen(scratch) + 1);
    if (target[0] == '/')
        done[0] = 0;
    return true;
}

/* The rest of a path below what does not exist has no links. */
static bool append_rest(void)
{
    char name[256];
    bool fits;
    while (next(name, &fits)) {
        if (strcmp(name, "..") == 0)
            pop();
        else if (strcmp(name, ".") != 0 && !join(name, strlen(name)))
            return false;
    }
    return fits;
}

static bool resolve(void)
{
    static char target[LINK_MAX + 1];
    char name[256];
    bool fits;
    int links = 0;
    done[0] = 0;
    while (next(name, &fits)) {
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            pop();
            continue;
        }
        size_t before = strlen(done);
        if (!join(name, strlen(name)))
            return false;
        ssize_t length = readlink(done, target, LINK_MAX);
        if (length < 0 && errno == EINVAL)
            continue;
        if (length < 0)
            return (errno == ENOENT || errno == ENOTDIR) && append_rest();
        done[before] = 0;
        if (in_proc()) {
            bool stream = standard_stream();
            return join(name, strlen(name)) && stream && append_rest();
        }
        if (length == LINK_MAX || ++links > MAX_LINKS || !follow(target, (size_t)length))
            return false;
    }
    return fits;
}

static bool one(struct operation *o)
{
    uint8_t head[4];
    if (!operation_take(o, head, sizeof head))
        return false;
    uint32_t length = get32(head);
    if (length == 0 || length > NAME_LIMIT || !operation_take(o, given, length))
        return false;
    given[length] = 0;
    bool known = given[0] == '/' && !memchr(given, 0, length);
    if (known) {
        memcpy(todo, given, length + 1);
        known = resolve();
    }
    const char *first = known ? "" : unresolved;
    const char *second = known ? (done[0] ? done : "/") : given;
    size_t size = strlen(first) + (known ? strlen(second) : length);
    put32(head, (uint32_t)size);
    return operation_give(o, head, sizeof head) && operation_give(o, first, strlen(first))
        && operation_give(o, second, size - strlen(first));
}

uint8_t do_realpath(struct operation *o)
{
    for (uint64_t i = 0; i < o->a; i++, o->value++)
        if (!one(o))
            return FAULT_IO;
    return OK;
}
