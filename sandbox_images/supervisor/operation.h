/* One file operation from the inside of its process. */
#ifndef OPERATION_H
#define OPERATION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct operation {
    uint8_t op, flags;
    uint32_t mode;
    uint64_t a, b;
    char *path;
    const uint8_t *rest; /* input that came with the request */
    size_t rest_length;
    int in, out; /* more input, output; or -1 */
    /* the answer */
    uint64_t value;
    const uint8_t *extra;
    size_t extra_length;
};

enum { KEEP_MODE = 0xffffffff };

static const uint64_t MAX_FILE = 64u << 20;

/* Exactly `length` bytes of input; false when it ended before. */
int operation_take(struct operation *o, void *bytes, size_t length);
int operation_give(const struct operation *o, const void *bytes, size_t length);

/* An errno as the protocol's code. */
uint8_t fault_of(int number);

uint8_t do_read(struct operation *o);
uint8_t do_write(struct operation *o);
uint8_t do_edit(struct operation *o);
uint8_t do_list(struct operation *o);
uint8_t do_stat(struct operation *o);
uint8_t do_remove(struct operation *o);
uint8_t do_upload(struct operation *o);
uint8_t do_realpath(struct operation *o);

/* A Stat record into `place`, which holds STAT_MAX bytes; its length, or 0 with errno. */
enum { STAT_HEAD = 44, LINK_MAX = 4096, NAME_LIMIT = 8192, STAT_MAX = STAT_HEAD + LINK_MAX + NAME_LIMIT };
size_t stat_record(uint8_t *place, int directory, const char *name, const char *shown, size_t length);

#endif
