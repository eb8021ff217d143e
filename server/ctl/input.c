/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/input.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/output.h"

#define CHUNK 65536

bool input_is_stdin(const char *word) {
        return strcmp(word, "-") == 0;
}

static int read_hex(const char *word, struct buf *bytes) {
        CLEANUP(buf_deinit) struct buf upper = { 0 };
        int r;

        for (const char *at = word; *at; at++) {
                char digit = (char)toupper((unsigned char)*at);

                buf_append(&upper, &digit, 1);
        }

        r = buf_failed(&upper) ? -ENOMEM : base16_append_decoded(bytes, buf_slice(&upper));
        if (r == -EINVAL)
                complain("\"%s\": hex digits, two a byte, were expected", LOG_TEXT(slice_from_string(word)));
        else if (r < 0)
                complain("%s", strerror(-r));
        return r;
}

static int read_all(int fd, size_t length_max, struct buf *bytes) {
        size_t n_before = bytes->length;
        char chunk[CHUNK];

        for (;;) {
                ssize_t n = read(fd, chunk, sizeof(chunk));

                if (n < 0)
                        return -errno;
                if (n == 0)
                        return 0;
                if ((size_t)n > length_max - (bytes->length - n_before))
                        return -EFBIG;
                buf_append(bytes, chunk, (size_t)n);
                if (buf_failed(bytes))
                        return -ENOMEM;
        }
}

int input_read_file(const char *name, size_t length_max, struct buf *bytes) {
        bool is_stdin = input_is_stdin(name);
        struct log_text shown = log_text(slice_from_string(is_stdin ? "stdin" : name));
        int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : read_all(fd, length_max, bytes);

        if (r == -EFBIG)
                complain("%s: longer than %zu bytes", shown.text, length_max);
        else if (r < 0)
                complain("cannot read %s: %s", shown.text, strerror(-r));
        if (fd >= 0 && !is_stdin)
                close(fd);
        return r;
}

int input_read_word(const char *word, bool hex, struct buf *bytes) {
        if (input_is_stdin(word))
                return input_read_file(word, INPUT_LENGTH_MAX, bytes);
        if (hex)
                return read_hex(word, bytes);

        buf_append_string(bytes, word);
        if (!buf_failed(bytes))
                return 0;
        complain("%s", strerror(ENOMEM));
        return -ENOMEM;
}
