/* Many entries in one stream: kind, mode, sizes, path, data; again and again. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "operation.h"
#include "paths.h"
#include "wire.h"

enum { RECORD = 20, KIND_FILE = 0, KIND_DIRECTORY = 1, KIND_LINK = 2 };

static uint8_t chunk[64 * 1024];
static char path[NAME_LIMIT + 1], parent_path[NAME_LIMIT + 1];
static int parent = -1;

/* Neighbours in the stream share a directory, which is walked once. Something in the box could
 * replace it meanwhile: then entries land in the directory that was walked, never elsewhere. */
static int enter_parent(int root, const char **name)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    *name = slash ? slash + 1 : path;
    if (parent >= 0 && strlen(parent_path) == length && memcmp(parent_path, path, length) == 0)
        return parent;
    if (parent >= 0)
        close(parent);
    memcpy(parent_path, path, length);
    parent_path[length] = 0;
    parent = path_open_directory_at(root, parent_path, true);
    return parent;
}

static uint8_t skip_or_put(struct operation *o, int fd, uint64_t length)
{
    uint8_t fault = OK;
    while (length > 0) {
        size_t piece = length < sizeof chunk ? length : sizeof chunk;
        if (!operation_take(o, chunk, piece))
            return FAULT_IO;
        length -= piece;
        for (size_t done = 0; done < piece && fault == OK;) {
            ssize_t put = write(fd, chunk + done, piece - done);
            if (put < 0 && errno == EINTR)
                continue;
            if (put <= 0)
                fault = fault_of(errno);
            else
                done += (size_t)put;
        }
        if (fault != OK)
            return fault;
    }
    return OK;
}

static uint8_t make_file(struct operation *o, int directory, const char *name, uint32_t mode, uint64_t length)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(directory, name, flags, 0600);
    if (fd < 0 && errno == EEXIST && unlinkat(directory, name, 0) == 0)
        fd = openat(directory, name, flags, 0600);
    if (fd < 0)
        return fault_of(errno);
    uint8_t fault = skip_or_put(o, fd, length);
    if (fault == OK && fchmod(fd, mode & 0777) != 0)
        fault = fault_of(errno);
    close(fd);
    return fault;
}

static uint8_t make_directory(int directory, const char *name, uint32_t mode)
{
    struct stat status;
    if (mkdirat(directory, name, 0700) != 0 && errno != EEXIST)
        return fault_of(errno);
    /* A directory that is there takes the mode; anything else in its place is refused. */
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOTDIR ? FAULT_EXISTS : fault_of(errno);
    bool done = fstat(fd, &status) == 0 && fchmod(fd, mode & 0777) == 0;
    close(fd);
    return done ? OK : fault_of(errno);
}

static uint8_t make_link(struct operation *o, int directory, const char *name, uint64_t length)
{
    if (length == 0 || length > LINK_MAX)
        return FAULT_NAME;
    if (!operation_take(o, chunk, length))
        return FAULT_IO;
    chunk[length] = 0;
    const char *target = (const char *)chunk;
    if (symlinkat(target, directory, name) == 0)
        return OK;
    if (errno != EEXIST || unlinkat(directory, name, 0) != 0)
        return fault_of(errno);
    return symlinkat(target, directory, name) == 0 ? OK : fault_of(errno);
}

/* Refused before anything is made on the way. */
static bool leads_up(void)
{
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += strspn(at, "/");
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == 0))
            return true;
    }
    return false;
}

static uint8_t make_entry(struct operation *o, int root, const uint8_t *head)
{
    const char *name;
    uint64_t length = get64(head + 12);
    uint32_t size = get32(head + 8);
    if (size == 0 || size > NAME_LIMIT)
        return FAULT_NAME;
    if (!operation_take(o, path, size))
        return FAULT_IO;
    path[size] = 0;
    o->extra = (const uint8_t *)path;
    o->extra_length = size;
    if (memchr(path, 0, size) || path[0] == '/' || path[size - 1] == '/' || leads_up())
        return FAULT_NAME;
    int directory = enter_parent(root, &name);
    if (directory < 0)
        return fault_of(errno);
    if (strcmp(name, ".") == 0)
        return FAULT_NAME;
    if (head[0] == KIND_FILE)
        return make_file(o, directory, name, get32(head + 4), length);
    if (head[0] == KIND_DIRECTORY)
        return length ? FAULT_NAME : make_directory(directory, name, get32(head + 4));
    return head[0] == KIND_LINK ? make_link(o, directory, name, length) : FAULT_NAME;
}

uint8_t do_upload(struct operation *o)
{
    uint8_t head[RECORD];
    int root = path_open_directory(o->path);
    if (root < 0)
        return fault_of(errno);
    for (uint64_t i = 0; i < o->a; i++) {
        if (!operation_take(o, head, sizeof head)) {
            o->extra_length = 0;
            return FAULT_IO;
        }
        uint8_t fault = make_entry(o, root, head);
        if (fault != OK)
            return fault;
        o->value++;
    }
    o->extra_length = 0;
    return OK;
}
