/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

uint8_t input_byte(struct slice *input) {
        uint8_t byte;

        if (input->length == 0)
                return 0;

        byte = input->data[0];
        *input = (struct slice){ input->data + 1, input->length - 1 };
        return byte;
}

bool input_chance(struct slice *input, unsigned int percent) {
        return input_byte(input) * 100U < percent * 256U;
}

size_t input_below(struct slice *input, size_t n) {
        return input_byte(input) % n;
}

uint64_t input_number(struct slice *input, size_t n_bytes) {
        uint64_t number = 0;

        while (n_bytes-- > 0)
                number = number << 8 | input_byte(input);
        return number;
}

struct slice input_text(struct slice *input) {
        size_t length = input_byte(input);
        struct slice text;

        if (length > input->length)
                length = input->length;

        text = (struct slice){ input->data, length };
        *input = (struct slice){ input->data + length, input->length - length };
        return text;
}

struct slice text_copy(struct slice text) {
        uint8_t *copy = malloc(text.length ? text.length : 1);

        ASSERT(copy);
        if (text.length > 0)
                memcpy(copy, text.data, text.length);
        return (struct slice){ copy, text.length };
}

void text_free(struct slice *text) {
        free((void *)text->data);
}

char *input_file(struct slice content) {
        static char name[32];
        static int fd = -1;

        if (fd < 0) {
                fd = memfd_create("input", MFD_CLOEXEC);
                ASSERT(fd >= 0);
                snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        }
        ASSERT(ftruncate(fd, 0) == 0);
        ASSERT(pwrite(fd, content.data, content.length, 0) == (ssize_t)content.length);
        return name;
}
