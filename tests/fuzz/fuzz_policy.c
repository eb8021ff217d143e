/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A policy file and access decisions, compared with a model that goes through the lines. In the
 * input, bytes below a blank stand for whole rules, lines and wildcards, so that many generated
 * inputs are valid policies; 127 is a NUL, 126 a vertical tab.
 */

#include <stdio.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "config/policy_file.h"
#include "fuzz/fuzz.h"
#include "fuzz/policy_model.h"

#define N_QUESTIONS_MAX 20
#define NAME_LENGTH_MAX 16
#define KEY_LENGTH_MAX  64

static const char *const snippets[' '] = {
        [0] = "\nany = yes\npattern = ",
        [1] = "\naccess = read\nclient = a\npattern = a*",
        [2] = "\naccess : write\nuser = b\nstring = b",
        [3] = "\n\taccess=readwrite\r\n any = yes\r\n pattern: {client}/",
        [4] = "\nany = yes\n",
        [5] = "\nclient = a\n",
        [6] = "\nuser = b\n",
        [7] = "\npattern = ",
        [8] = "\nstring = ",
        [11] = "\nbinary = ",
        [12] = "\nclient = ",
        [14] = "\nuser = ",
        [15] = "{client}",
        [16] = "{user}",
        [17] = "*",
        [18] = "?",
        [19] = "[a-b]",
        [20] = "[!a]",
        [21] = "[*]",
        [22] = "a",
        [23] = "b",
        [24] = "ab",
        [25] = "\xC3\xA4",
        [26] = "/",
        [27] = "YWI=",
        [28] = "**",
        [29] = "{principal.clientId}",
        [30] = "-",
        [31] = "\n# none\n",
};

static void append_expanded(struct buf *file, struct slice text) {
        for (size_t i = 0; i < text.length; i++) {
                uint8_t byte = text.data[i];
                char section[32];

                if (byte >= ' ' || !snippets[byte]) {
                        byte = byte == 127 ? '\0' : byte == 126 ? '\v' : byte;
                        buf_append(file, &byte, 1);
                        continue;
                }
                if (byte >= 1 && byte <= 3) { /* each a rule with another name */
                        snprintf(section, sizeof(section), "\n[%zu]", i);
                        buf_append_string(file, section);
                }
                buf_append_string(file, snippets[byte]);
        }
}

static void take_fault(void *userdata, const char *where, const char *what) {
        const char *name = "/proc/self/fd/";

        ASSERT(strncmp(where, name, strlen(name)) == 0 && strchr(where, ':') && *what);
        ++*(size_t *)userdata;
}

static struct slice take_short(struct slice *input, size_t length_max) {
        size_t length = input_below(input, length_max);
        struct slice text = *input;

        if (length > input->length)
                length = input->length;
        text.length = length;
        *input = (struct slice){ input->data + length, input->length - length };
        return text;
}

static struct slice take_name(struct slice *input) {
        static const char *const names[] = { "a",        "b",    "",   "*",      "?", "[a-b]",
                                             "\xC3\xA4", "\xFF", "ab", "{user}", "/" };
        size_t choice = input_below(input, 2 * ARRAY_LENGTH(names));

        return choice < ARRAY_LENGTH(names) ? slice_from_string(names[choice])
                                            : take_short(input, NAME_LENGTH_MAX);
}

/* A key of arbitrary bytes; a few bytes stand for common parts of keys. */
static void take_key(struct slice *input, const struct request_origin *origin, struct buf *key) {
        struct slice text = take_short(input, KEY_LENGTH_MAX);

        for (size_t i = 0; i < text.length; i++) {
                uint8_t byte = text.data[i];

                if (byte == 15)
                        buf_append_slice(key, origin->client);
                else if (byte == 16)
                        buf_append_slice(key, origin->user);
                else if (byte > 16 && byte < 28)
                        buf_append_string(key, snippets[byte]);
                else
                        buf_append(key, &byte, 1);
        }
}

static void ask(const struct policy *policy, const struct policy_model *model, struct slice *input) {
        CLEANUP(buf_deinit) struct buf key = { 0 };
        uint8_t how = input_byte(input), few = how & 8 ? input_byte(input) : 0;
        enum access access = how & 1 ? ACCESS_WRITE : ACCESS_READ;
        struct request_origin origin = { .is_verified = !(how & 4) };
        uint64_t given = how & 8 ? few : POLICY_STEPS_MAX, budget = given;
        const struct policy_keys *keys;
        struct policy_location location;

        origin.client = take_name(input);
        origin.user = take_name(input);
        take_key(input, &origin, &key);
        keys = policy_decide(policy, &origin, access, buf_slice(&key), &budget);
        ASSERT(budget <= given);
        ASSERT(policy_grants_any(policy, &origin, access) ==
               policy_model_grants_any(model, &origin, access));
        if (keys) {
                location = policy_location(policy, keys);
                ASSERT(policy_model_grants(model, &origin, access, buf_slice(&key), location.line));
                ASSERT(slice_equal(location.rule, policy_model_rule(model, location.line)));
        } else if (budget > 0) {
                ASSERT(!policy_model_grants(model, &origin, access, buf_slice(&key), 0));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct policy_model model;
        CLEANUP(buf_deinit) struct buf file = { 0 };
        struct slice input = { data, size };
        size_t n_faults = 0;
        struct policy *policy;

        model.allows_unverified = input_chance(&input, 50);
        append_expanded(&file, input_text(&input));
        if (!policy_model_read(&model, buf_slice(&file)))
                return 0;

        policy = policy_file_read(input_file(buf_slice(&file)), model.allows_unverified, take_fault,
                                  &n_faults);
        ASSERT(!policy == (n_faults > 0));
        ASSERT(!policy == !policy_model_is_valid(&model));
        for (size_t i = 0; policy && i < N_QUESTIONS_MAX && (i == 0 || input.length > 0); i++)
                ask(policy, &model, &input);
        policy_free(policy);
        return 0;
}
