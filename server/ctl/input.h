/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/output.h"
#include "exports/exported_key.h"
#include "protocol/message.h"

/*
 * Keys and values from the user: on the command line, in a file, or on stdin, whose name
 * is "-". Errors are printed on stderr.
 */

/* Maximum length in bytes of a key, a value or a seed file: no MQTT packet can carry more. */
#define INPUT_LENGTH_MAX MESSAGE_REMAINING_LENGTH_MAX

/* Whether the word is "-". */
bool input_is_stdin(const char *word);

/*
 * Append the content of a file, which may be a pipe. Returns 0, -EFBIG for more than
 * INPUT_LENGTH_MAX bytes, -ENOMEM, or the -errno of reading.
 */
int input_read_file(const char *name, struct buf *bytes);

/*
 * Append the word, or stdin for "-". hex: the word has two hexadecimal digits per byte. Returns as
 * input_read_file(), or -EINVAL for a word that is not hexadecimal.
 */
int input_read_word(const char *word, bool hex, struct buf *bytes);

/* Where an import stores its keys. The functions complain of the cause of an error. */
struct importer {
        /*
         * Store a key, or keep it for finish(). now_ms: the wall clock, rounded up. A result
         * other than EXIT_DONE ends the import.
         */
        enum exit_code (*import)(struct importer *importer, const struct exported_key *exported,
                                 int64_t now_ms);

        /* Called once after the last import(), also after an error. */
        enum exit_code (*finish)(struct importer *importer);

        void *userdata;
        uint64_t line;       /* of the key of the running import() */
        uint64_t n_imported; /* stored keys: the functions count them */

        /* The key that was refused, if a function sets the line; else it is that of the last import(). */
        uint64_t failed_line;
        struct buf failed_key;
};

/*
 * Pass the keys of a file (exports/export_reader.h) to the importer, except expired ones. Then append the
 * number of imported keys to the output or, after an error, print it. A malformed line is an error:
 * EXIT_USAGE.
 */
enum exit_code input_import(const char *name, struct importer *importer, struct buf *output);
