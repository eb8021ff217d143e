/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * The users of the console, from the file of --console-users. Each line is
 *
 *     NAME = HASH
 *     NAME = HASH operator
 *
 * HASH: 64 hexadecimal digits, the SHA-256 of the user's token. An operator also sees what other
 * clients do. Blank lines and comments are as in a configuration file (config/ini_file.h).
 */
struct console_users;

struct console_user {
        char *name;
        bool is_operator;
};

/*
 * Read the file and report all faults; the arguments of take_fault are as in config/policy_file.h.
 * Returns the users, which the caller owns, or NULL if there was a fault.
 */
struct console_users *
console_users_read(const char *name, void (*take_fault)(void *userdata, const char *where, const char *what),
                   void *userdata);

/* Accepts NULL, returns NULL. */
struct console_users *console_users_free(struct console_users *users);

/*
 * Return the user with this token, or NULL. The time that this takes does not depend on the hashes.
 * The user is valid as long as the users.
 */
const struct console_user *console_users_find(const struct console_users *users, struct slice token);

/* A new token, base64url of 32 random bytes, and its hash as in the file. NUL-terminated. */
struct console_token {
        char token[44];
        char hash[65];
};
struct console_token console_token_make(void);

/* Whether a line of the file can have this name. */
bool console_user_name_is_valid(const char *name);
