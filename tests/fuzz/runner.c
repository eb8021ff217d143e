/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a fuzz target without libFuzzer: over every file of a directory, then over inputs of a
 * deterministic generator.
 *
 * usage: runner DIRECTORY [N_GENERATED]
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"

#define INPUT_LENGTH_MAX     (1 << 20)
#define GENERATED_LENGTH_MAX 400

static uint8_t input[INPUT_LENGTH_MAX];

/*
 * Copy the input to an allocation of its own, as libFuzzer does, so that reads past its end are
 * reported.
 */
static void run(struct slice bytes) {
        CLEANUP(text_free) struct slice copy = text_copy(bytes);

        ASSERT(LLVMFuzzerTestOneInput(copy.data, copy.length) == 0);
}

static int run_file(const char *directory, const char *name) {
        CLEANUP(cleanup_free) char *path = NULL;
        size_t length;
        FILE *file;

        if (asprintf(&path, "%s/%s", directory, name) < 0)
                return -ENOMEM;
        file = fopen(path, "rb");
        if (!file)
                return -errno;

        length = fread(input, 1, sizeof(input), file);
        fclose(file);
        fprintf(stderr, "%s\n", path); /* so the last line names the input that failed */
        run((struct slice){ input, length });
        return 0;
}

/* Return the number of files, or -errno. */
static int run_directory(const char *directory) {
        struct dirent **files;
        int n_files, n_run = 0, r = 0;

        n_files = scandir(directory, &files, NULL, alphasort);
        if (n_files < 0)
                return -errno;

        for (int i = 0; i < n_files; i++) {
                if (r == 0 && files[i]->d_name[0] != '.') {
                        r = run_file(directory, files[i]->d_name);
                        n_run++;
                }
                free(files[i]);
        }
        free(files);
        return r < 0 ? r : n_run;
}

static uint32_t next(uint64_t *state) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(*state >> 32);
}

/*
 * Every second input has only bytes below 32: such bytes select an action or a word of a dictionary
 * more often.
 */
static void run_generated(unsigned long n) {
        uint64_t state = 1;

        for (unsigned long i = 0; i < n; i++) {
                size_t length = next(&state) % GENERATED_LENGTH_MAX;

                for (size_t at = 0; at < length; at++)
                        input[at] = (uint8_t)(next(&state) & (i % 2 ? 0x1F : 0xFF));
                run((struct slice){ input, length });
        }
}

int main(int n_arguments, char **arguments) {
        int r;

        if (n_arguments < 2 || n_arguments > 3) {
                fprintf(stderr, "usage: %s DIRECTORY [N_GENERATED]\n", arguments[0]);
                return 2;
        }

        r = run_directory(arguments[1]);
        if (r <= 0) {
                fprintf(stderr, "%s: %s\n", arguments[1], r < 0 ? strerror(-r) : "no inputs");
                return 1;
        }
        fprintf(stderr, "generated inputs\n");
        run_generated(n_arguments == 3 ? strtoul(arguments[2], NULL, 10) : 0);
        printf("%d files\n", r);
        return 0;
}
