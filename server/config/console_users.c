/* SPDX-License-Identifier: Apache-2.0 */

#include "config/console_users.h"

#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "config/ini_file.h"

#define USERS_MAX      1000
#define NAME_BYTES_MAX 100
#define TOKEN_BYTES    32

struct listed_user {
        struct console_user user;
        uint8_t hash[crypto_hash_sha256_BYTES];
};

struct console_users {
        struct listed_user *users;
        size_t n_users, capacity;
};

struct users_reading {
        const char *file;
        struct console_users *users;
        void (*take_fault)(void *userdata, const char *where, const char *what);
        void *userdata;
        bool is_invalid;
};

static void report_fault(void *userdata, const char *where, const char *what) {
        struct users_reading *reading = userdata;

        reading->is_invalid = true;
        reading->take_fault(reading->userdata, where, what);
}

static void take_section(void *userdata, const char *section, unsigned int line) {
        struct users_reading *reading = userdata;

        (void)section;
        report_fault(reading, ini_position(reading->file, line).text,
                     "NAME = HASH or NAME = HASH operator was expected, and no section");
}

/* The name is an MQTT user name, and is shown in a line of the file. */
bool console_user_name_is_valid(const char *name) {
        size_t length = strlen(name);

        if (length == 0 || length > NAME_BYTES_MAX || !slice_is_utf8(slice_from_string(name)) ||
            strpbrk(name, "=:") || strchr("[#;", name[0]) || isspace((unsigned char)name[0]) ||
            isspace((unsigned char)name[length - 1]))
                return false;
        for (const char *at = name; *at; at++)
                if (iscntrl((unsigned char)*at))
                        return false;
        return true;
}

static bool parse_hash(const char *text, uint8_t *ret_hash) {
        size_t n_bytes;

        return sodium_hex2bin(ret_hash, crypto_hash_sha256_BYTES, text, 2 * crypto_hash_sha256_BYTES, NULL,
                              &n_bytes, NULL) == 0 &&
               n_bytes == crypto_hash_sha256_BYTES;
}

/* Return what is wrong with the line, or NULL. The name of the user is not set yet. */
static const char *parse_line(const struct console_users *users, const char *name, const char *value,
                              struct listed_user *ret_user) {
        const char *rest = value + strcspn(value, " \t");

        if (!console_user_name_is_valid(name))
                return "a name of at most 100 bytes was expected before the =";
        for (size_t i = 0; i < users->n_users; i++)
                if (strcmp(users->users[i].user.name, name) == 0)
                        return "the name is given twice";
        if (rest - value != 2 * crypto_hash_sha256_BYTES || !parse_hash(value, ret_user->hash))
                return "a hash was expected after the =, as statestorectl console-token prints it";
        rest += strspn(rest, " \t");
        if (*rest && strcmp(rest, "operator") != 0)
                return "nothing or the word operator was expected after the hash";
        ret_user->user.is_operator = *rest;
        return users->n_users == USERS_MAX ? "at most 1000 users were expected" : NULL;
}

static void take_line(void *userdata, const char *section, const char *name, const char *value,
                      unsigned int line) {
        struct users_reading *reading = userdata;
        struct console_users *users = reading->users;
        struct listed_user user = { 0 };
        const char *fault = parse_line(users, name, value, &user);

        (void)section;
        if (!fault) {
                user.user.name = strdup(name);
                if (!user.user.name || array_reserve((void **)&users->users, &users->capacity,
                                                     users->n_users + 1, sizeof(*users->users)) < 0) {
                        free(user.user.name);
                        fault = "out of memory";
                }
        }
        if (fault)
                report_fault(reading, ini_position(reading->file, line).text, fault);
        else
                users->users[users->n_users++] = user;
}

struct console_users *console_users_free(struct console_users *users) {
        if (!users)
                return NULL;
        for (size_t i = 0; i < users->n_users; i++)
                free(users->users[i].user.name);
        free(users->users);
        free(users);
        return NULL;
}

struct console_users *
console_users_read(const char *name, void (*take_fault)(void *userdata, const char *where, const char *what),
                   void *userdata) {
        struct users_reading reading = { .file = name,
                                         .users = calloc(1, sizeof(*reading.users)),
                                         .take_fault = take_fault,
                                         .userdata = userdata };
        const struct ini_sink sink = {
                .section = take_section, .value = take_line, .fault = report_fault, .userdata = &reading
        };

        if (!reading.users) {
                report_fault(&reading, name, "out of memory");
                return NULL;
        }
        ini_file_read(name, &sink);
        return reading.is_invalid ? console_users_free(reading.users) : reading.users;
}

const struct console_user *console_users_find(const struct console_users *users, struct slice token) {
        const struct console_user *found = NULL;
        uint8_t hash[crypto_hash_sha256_BYTES];

        crypto_hash_sha256(hash, token.data, token.length);
        for (size_t i = 0; i < users->n_users; i++)
                if (sodium_memcmp(hash, users->users[i].hash, sizeof(hash)) == 0)
                        found = &users->users[i].user;
        return found;
}

struct console_token console_token_make(void) {
        uint8_t bytes[TOKEN_BYTES], hash[crypto_hash_sha256_BYTES];
        struct console_token token;

        random_fill(bytes, sizeof(bytes));
        sodium_bin2base64(token.token, sizeof(token.token), bytes, sizeof(bytes),
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        crypto_hash_sha256(hash, (const uint8_t *)token.token, strlen(token.token));
        sodium_bin2hex(token.hash, sizeof(token.hash), hash, sizeof(hash));
        return token;
}
