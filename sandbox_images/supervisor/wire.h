/* Numbers of the protocol; docs/sandbox-protocol.md describes them. */
#ifndef WIRE_H
#define WIRE_H

#include <stdint.h>
#include <string.h>

enum {
    PROTOCOL_VERSION = 1,
    HEADER = 9,
    MAX_PAYLOAD = 64 * 1024,
    CHANNEL_WINDOW = 256 * 1024,
    TOTAL_WINDOW = 768 * 1024,
    INPUT_WINDOW = 128 * 1024,
    MAX_REQUEST = 512 * 1024,
    TOKEN = 32,
    NONCE = 16,
    BOOT_ID = 16,
};

enum frame_type {
    F_LEASE = 1,
    F_PING,
    F_PART,
    F_EXEC,
    F_CANCEL,
    F_DATA,
    F_END,
    F_CREDIT,
    F_FILE,
    F_SHUTDOWN,
    F_QUIET,
    F_HELLO = 65,
    F_PONG,
    F_STARTED,
    F_OUT,
    F_ERR,
    F_EXIT,
    F_REPLY,
    F_REFUSED,
};

enum reason { R_EXITED, R_TIMEOUT, R_CANCELLED, R_OOM, R_OUTPUT_LIMIT, R_KEEPER_LOST };

enum refusal { NO_MALFORMED = 1, NO_ROOM, NO_SIZE };

/* What the workload's own processes bring about; a keeper that cannot start its command says it
 * in the same words. */
#define NO_ROOM_TEXT "the box has no room for another process; stop background processes"

enum exec_flag { X_STDIN = 1, X_MERGE = 2, X_KILL_LEFT = 4 };

enum file_op {
    OP_READ = 1,
    OP_WRITE,
    OP_EDIT,
    OP_LIST,
    OP_STAT,
    OP_REMOVE,
    OP_UPLOAD,
    OP_REALPATH,
};

enum file_flag { FILE_INPUT = 1, FILE_EVERY = 2 };

/* Order of harness.errors.FileFault's codes on the wire. */
enum fault {
    OK,
    FAULT_MISSING,
    FAULT_DENIED,
    FAULT_LINK,
    FAULT_DIRECTORY,
    FAULT_NOT_DIRECTORY,
    FAULT_NOT_FILE,
    FAULT_EXISTS,
    FAULT_TOO_LARGE,
    FAULT_NO_SPACE,
    FAULT_NO_MATCH,
    FAULT_MANY_MATCHES,
    FAULT_NAME,
    FAULT_IO,
};

/* Both targets are little-endian, as the wire is. */
static inline uint16_t get16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static inline uint32_t get32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t get64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static inline void put16(uint8_t *p, uint16_t v) { memcpy(p, &v, 2); }
static inline void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }
static inline void put64(uint8_t *p, uint64_t v) { memcpy(p, &v, 8); }

#endif
