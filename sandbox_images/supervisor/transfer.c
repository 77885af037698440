/* Reading, writing and editing one file. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "operation.h"
#include "paths.h"
#include "wire.h"

static uint8_t chunk[64 * 1024];

/* A regular file for reading, never through a link, never blocking on a fifo. */
static int open_file(const char *path, struct stat *status, uint8_t *fault)
{
    const char *name;
    int parent = path_open_parent(path, false, &name);
    if (parent < 0) {
        *fault = fault_of(errno);
        return -1;
    }
    int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int number = errno;
    close(parent);
    if (fd < 0) {
        *fault = fault_of(number);
        return -1;
    }
    if (fstat(fd, status) == 0 && S_ISREG(status->st_mode))
        return fd;
    *fault = S_ISDIR(status->st_mode) ? FAULT_DIRECTORY : FAULT_NOT_FILE;
    close(fd);
    return -1;
}

uint8_t do_read(struct operation *o)
{
    struct stat status;
    uint8_t fault = OK;
    int fd = open_file(o->path, &status, &fault);
    if (fd < 0)
        return fault;
    uint64_t size = (uint64_t)status.st_size, left = o->b;
    uint64_t there = size > o->a ? size - o->a : 0;
    if ((left < there ? left : there) > MAX_FILE)
        return FAULT_TOO_LARGE;
    if (left > MAX_FILE)
        left = MAX_FILE;
    if (o->a > INT64_MAX)
        return OK;
    while (left > 0) {
        ssize_t got = pread(fd, chunk, left < sizeof chunk ? left : sizeof chunk, (off_t)(o->a + o->value));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fault_of(errno);
        if (got == 0 || !operation_give(o, chunk, (size_t)got))
            break;
        left -= (uint64_t)got;
        o->value += (uint64_t)got;
    }
    return OK;
}

struct draft {
    int parent, fd;
    const char *name;
    char temporary[40];
};

static uint8_t draft_open(struct draft *draft, const char *path, bool make, mode_t *mode)
{
    struct stat status;
    draft->parent = path_open_parent(path, make, &draft->name);
    if (draft->parent < 0)
        return fault_of(errno);
    if (strcmp(draft->name, ".") == 0)
        return FAULT_DIRECTORY;
    if (fstatat(draft->parent, draft->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISLNK(status.st_mode))
            return FAULT_LINK;
        if (!S_ISREG(status.st_mode))
            return S_ISDIR(status.st_mode) ? FAULT_DIRECTORY : FAULT_NOT_FILE;
        if (*mode == (mode_t)KEEP_MODE)
            *mode = status.st_mode & 07777;
        /* A new file takes this one's place, so ask whether this one could be written. */
        if (faccessat(draft->parent, draft->name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0
            && errno == EACCES)
            return FAULT_DENIED;
    } else if (errno != ENOENT) {
        return fault_of(errno);
    }
    if (*mode == (mode_t)KEEP_MODE)
        *mode = 0644;
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return FAULT_IO;
    snprintf(draft->temporary, sizeof draft->temporary, ".h%016llx%016llx",
             (unsigned long long)random[0], (unsigned long long)random[1]);
    draft->fd = openat(draft->parent, draft->temporary,
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return draft->fd < 0 ? fault_of(errno) : OK;
}

static bool draft_put(const struct draft *draft, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        ssize_t put = write(draft->fd, bytes, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        bytes += put;
        length -= (size_t)put;
    }
    return true;
}

static uint8_t draft_close(struct draft *draft, mode_t mode, uint8_t fault)
{
    if (fault == OK
        && (fchmod(draft->fd, mode & 07777) != 0 || close(draft->fd) != 0
            || renameat(draft->parent, draft->temporary, draft->parent, draft->name) != 0))
        fault = fault_of(errno);
    if (fault != OK)
        unlinkat(draft->parent, draft->temporary, 0);
    return fault;
}

uint8_t do_write(struct operation *o)
{
    struct draft draft;
    mode_t mode = o->mode;
    uint8_t fault = draft_open(&draft, o->path, true, &mode);
    if (fault != OK)
        return fault;
    for (uint64_t left = o->a; left > 0 && fault == OK;) {
        size_t piece = left < sizeof chunk ? left : sizeof chunk;
        if (!operation_take(o, chunk, piece))
            fault = FAULT_IO;
        else if (!draft_put(&draft, chunk, piece))
            fault = fault_of(errno);
        left -= piece;
    }
    return draft_close(&draft, mode, fault);
}

/* Memory for one operation; its process ends soon. */
static uint8_t *space(uint64_t length)
{
    void *place = mmap(NULL, length ? length : 1, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return place == MAP_FAILED ? NULL : place;
}

static uint8_t *load(const char *path, uint64_t *length, uint8_t *fault)
{
    struct stat status;
    int fd = open_file(path, &status, fault);
    if (fd < 0)
        return NULL;
    if ((uint64_t)status.st_size > MAX_FILE) {
        *fault = FAULT_TOO_LARGE;
        return NULL;
    }
    uint8_t *text = space((uint64_t)status.st_size);
    *fault = FAULT_IO;
    *length = 0;
    while (text && *length < (uint64_t)status.st_size) {
        ssize_t got = read(fd, text + *length, (uint64_t)status.st_size - *length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        *length += (uint64_t)got;
    }
    close(fd);
    return text;
}

static uint64_t count_matches(const uint8_t *text, uint64_t length, const uint8_t *old, uint64_t size)
{
    uint64_t count = 0;
    const uint8_t *at = text, *end = text + length;
    while ((at = memmem(at, (size_t)(end - at), old, size))) {
        count++;
        at += size;
    }
    return count;
}

static uint8_t put_edited(struct draft *draft, const uint8_t *text, const uint8_t *end,
                          const struct operation *o, const uint8_t *old)
{
    const uint8_t *hit;
    while ((hit = memmem(text, (size_t)(end - text), old, o->a))) {
        if (!draft_put(draft, text, (size_t)(hit - text)) || !draft_put(draft, old + o->a, o->b))
            return fault_of(errno);
        text = hit + o->a;
    }
    return draft_put(draft, text, (size_t)(end - text)) ? OK : fault_of(errno);
}

uint8_t do_edit(struct operation *o)
{
    uint8_t fault = OK;
    uint64_t length;
    if (o->a > MAX_FILE || o->b > MAX_FILE)
        return FAULT_TOO_LARGE;
    uint8_t *strings = space(o->a + o->b);
    if (!strings || !operation_take(o, strings, o->a + o->b))
        return FAULT_IO;
    const uint8_t *text = load(o->path, &length, &fault);
    if (!text)
        return fault;
    o->value = o->a ? count_matches(text, length, strings, o->a) : 0;
    if (o->value == 0)
        return FAULT_NO_MATCH;
    if (o->value > 1 && !(o->flags & FILE_EVERY))
        return FAULT_MANY_MATCHES;
    if (length - o->value * o->a + o->value * o->b > MAX_FILE)
        return FAULT_TOO_LARGE;
    struct draft draft;
    mode_t mode = KEEP_MODE;
    fault = draft_open(&draft, o->path, false, &mode);
    if (fault != OK)
        return fault;
    fault = put_edited(&draft, text, text + length, o, strings);
    return draft_close(&draft, mode, fault);
}
