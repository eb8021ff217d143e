/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/input.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "exports/export_reader.h"

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
                complain("\"%s\": two hexadecimal digits per byte were expected", LOG_STRING(word));
        else if (r < 0)
                complain("%s", strerror(-r));
        return r;
}

int input_read_file(const char *name, struct buf *bytes) {
        bool is_stdin = input_is_stdin(name);
        struct log_text shown = log_text(slice_from_string(is_stdin ? "stdin" : name));
        int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : buf_append_file(bytes, fd, INPUT_LENGTH_MAX);

        if (r == -EFBIG)
                complain("%s: longer than %d bytes", shown.text, INPUT_LENGTH_MAX);
        else if (r < 0)
                complain("cannot read %s: %s", shown.text, strerror(-r));
        if (fd >= 0 && !is_stdin)
                close(fd);
        return r;
}

int input_read_word(const char *word, bool hex, struct buf *bytes) {
        if (input_is_stdin(word))
                return input_read_file(word, bytes);
        if (hex)
                return read_hex(word, bytes);

        buf_append_string(bytes, word);
        if (!buf_failed(bytes))
                return 0;
        complain_of_memory();
        return -ENOMEM;
}

/* "N keys were imported" */
#define N_IMPORTED "%" PRIu64 " %s imported"

enum exit_code input_import(const char *name, struct importer *importer, struct buf *output) {
        CLEANUP(export_reader_deinit) struct export_reader reader;
        CLEANUP(exported_key_deinit) struct exported_key exported = { 0 };
        enum exit_code code = EXIT_DONE, finished;
        uint64_t n_expired = 0, n_without_details = 0;
        const char *were;
        int r = export_reader_open(&reader, name);

        if (r < 0) {
                complain("cannot read %s", reader.fault);
                return EXIT_USAGE;
        }

        while (code == EXIT_DONE && (r = export_reader_next(&reader, &exported)) > 0) {
                int64_t now_ms = system_clock_wall_ms_rounded_up();

                if (exported.deadline_ms <= now_ms) {
                        n_expired++;
                        continue;
                }
                importer->line = reader.key_line;
                code = importer->import(importer, &exported, now_ms);
                n_without_details += !exported.has_details;
        }
        finished = importer->finish(importer);
        were = importer->n_imported == 1 ? "key was" : "keys were";
        if (code != EXIT_DONE || finished != EXIT_DONE) {
                if (importer->failed_line == 0) {
                        importer->failed_line = reader.key_line;
                        buf_append_slice(&importer->failed_key, buf_slice(&exported.key));
                }
                complain("%s:%" PRIu64 ": the import ends at \"%s\"; " N_IMPORTED, LOG_STRING(reader.name),
                         importer->failed_line, LOG_TEXT(buf_slice(&importer->failed_key)),
                         importer->n_imported, were);
                buf_deinit(&importer->failed_key);
                return code != EXIT_DONE ? code : finished;
        }
        if (r < 0) {
                complain("%s; " N_IMPORTED, r == -EBADMSG ? reader.fault : "out of memory",
                         importer->n_imported, were);
                return EXIT_USAGE;
        }
        if (n_without_details > 0)
                complain("%s: %" PRIu64
                         " key%s without \"deadline\" and \"token\": such keys never expire, and any "
                         "client may write them",
                         LOG_STRING(reader.name), n_without_details, n_without_details == 1 ? "" : "s");
        buf_append_format(output, "%" PRIu64 " key%s imported", importer->n_imported,
                          importer->n_imported == 1 ? "" : "s");
        if (n_expired > 0)
                buf_append_format(output, ", %" PRIu64 " left out: their deadline has passed", n_expired);
        buf_append_string(output, "\n");
        return EXIT_DONE;
}
