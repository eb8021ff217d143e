/* SPDX-License-Identifier: Apache-2.0 */

#include "records/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system_clock.h"
#include "protocol/companion.h"
#include "protocol/topics.h"
#include "records/recording.h"

/* The buffer is written when it reaches this number of bytes. */
#define BUFFERED_MAX ((size_t)1 << 20)

struct recorder {
        char *name;
        int fd;
        struct buf lines; /* complete lines */
        uint64_t n_buffered;
        bool has_requests; /* the buffer contains requests */
        bool is_failing;   /* writing failed, and this was logged */
        uint64_t n_dropped;
};

/*
 * Return the reason why other users may be able to read the file; NULL if they cannot. Do not check devices: the administrator
 * sets their mode.
 */
static const char *find_exposure(int fd) {
        struct stat status;

        if (fstat(fd, &status) < 0)
                return strerror(errno);
        if (S_ISCHR(status.st_mode))
                return NULL;
        if (status.st_uid != geteuid())
                return "the file belongs to another user: choose a file that the store owns";
        if (status.st_mode & (S_IRWXG | S_IRWXO))
                return "other users can access the file, and a recording contains all keys and values: "
                       "chmod 600 it";
        return NULL;
}

/* Open the file. Logs the cause of an error. */
static int open_file(const char *file) {
        /* O_NONBLOCK: opening a pipe without a reader fails instead of blocking. */
        int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC,
                      S_IRUSR | S_IWUSR);
        const char *fault;
        int r = fd < 0 ? -errno : -EPERM;

        if (r == -ELOOP)
                fault = "the file is a symbolic link: name its target instead";
        else
                fault = fd < 0 ? strerror(-r) : find_exposure(fd);
        if (!fault)
                return fd;

        log_error("cannot start: --record %s: %s", LOG_STRING(file), fault);
        if (fd >= 0)
                close(fd);
        return r;
}

int recorder_open(struct recorder **ret_recorder, const char *file) {
        struct recorder *recorder = calloc(1, sizeof(*recorder));
        int r;

        if (!recorder)
                return -ENOMEM;

        recorder->name = strdup(file);
        recorder->fd = recorder->name ? open_file(file) : -ENOMEM;
        if (recorder->fd < 0) {
                r = recorder->fd;
                recorder_close(recorder);
                return r;
        }

        recording_append(&recorder->lines, RECORDED_START, (struct slice){ 0 }, NULL,
                         system_clock_wall_ms());
        recorder->n_buffered = 1;
        log_info("requests and replies, with all keys and values, are recorded in %s", LOG_STRING(file));
        *ret_recorder = recorder;
        return 0;
}

struct recorder *recorder_close(struct recorder *recorder) {
        if (!recorder)
                return NULL;

        recorder_flush(recorder);
        if (recorder->fd >= 0)
                close(recorder->fd);
        buf_deinit(&recorder->lines);
        free(recorder->name);
        free(recorder);
        return NULL;
}

/* Write the whole buffer or nothing: after an error, truncate the file to its former length. */
static int write_lines(struct recorder *recorder) {
        size_t n_written = 0;
        int r;

        if (buf_failed(&recorder->lines))
                return -ENOMEM;
        while (n_written < recorder->lines.length) {
                ssize_t n = write(recorder->fd, recorder->lines.data + n_written,
                                  recorder->lines.length - n_written);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        r = -errno;
                        if (n_written > 0 &&
                            ftruncate(recorder->fd, lseek(recorder->fd, 0, SEEK_END) - (off_t)n_written) < 0)
                                log_error("the recording %s may contain an incomplete line: %s",
                                          LOG_STRING(recorder->name), strerror(errno));
                        return r;
                }
                n_written += (size_t)n;
        }
        return 0;
}

void recorder_flush(struct recorder *recorder) {
        int r;

        if (!recorder || recorder->n_buffered == 0)
                return;

        r = write_lines(recorder);
        if (r < 0) {
                if (!recorder->is_failing)
                        log_error("cannot write the recording %s: %s; lines are dropped until writing "
                                  "succeeds",
                                  LOG_STRING(recorder->name), strerror(-r));
                recorder->n_dropped += recorder->n_buffered;
        } else if (recorder->is_failing) {
                log_warning("writing the recording %s succeeds again: dropped_lines=%" PRIu64,
                            LOG_STRING(recorder->name), recorder->n_dropped);
                recorder->n_dropped = 0;
        }
        recorder->is_failing = r < 0;
        recorder->n_buffered = 0;
        recorder->has_requests = false;
        buf_reset(&recorder->lines);
}

void recorder_flush_requests(struct recorder *recorder) {
        if (recorder && recorder->has_requests)
                recorder_flush(recorder);
}

static void append_message(struct recorder *recorder, enum recorded_type type, struct slice client,
                           const struct message *message) {
        if (!recorder)
                return;

        recording_append(&recorder->lines, type, client, message, system_clock_wall_ms());
        recorder->n_buffered++;
        recorder->has_requests |= type == RECORDED_REQUEST;
        if (recorder->lines.length > BUFFERED_MAX)
                recorder_flush(recorder);
}

void recorder_request(struct recorder *recorder, struct slice client, const struct message *message) {
        append_message(recorder, RECORDED_REQUEST, client, message);
}

void recorder_notification(struct recorder *recorder, const struct message *notification) {
        append_message(recorder, RECORDED_NOTIFICATION, (struct slice){ 0 }, notification);
}

void recorder_sent(struct recorder *recorder, const struct message *message) {
        if (!slice_starts_with(message->topic, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX)) &&
            !slice_starts_with(message->topic, SLICE_LITERAL(COMPANION_CONTROL)))
                append_message(recorder, RECORDED_REPLY, (struct slice){ 0 }, message);
}
