/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "records/record.h"

/*
 * Initial keys and values of a store: a text, exported or written by hand. The first character determines
 * its format.
 *
 * Lines of JSON, each a record as in record.h:
 *
 *     {"key":"greeting","value":"hello"}
 *     {"key":"lock","value":"me","deadline":1795219618274,"token":"001795219608274:00000:StateStore"}
 *
 * Or a list of objects, as in the file statestore.json for testing data flows of Azure IoT Operations:
 *
 *     [ { "factoryId": "factoryA" }, { "machineId": "machineA", "limits": { "max": 7 } } ]
 *
 * Each member of such an object is a key and its value. A string is the value as it is. For an object, a
 * list, a number, true or false the value is its JSON text without blanks. An object with both "key" and
 * "value" (or key_base64, value_base64) is a record, so a list may contain records too.
 */
struct seed {
        const char *name; /* of the file, for messages; borrowed */
        struct slice text;
        struct buf file; /* the text, if seed_open() has read it */
        size_t position;
        uint64_t line, record_line;
        bool is_list, is_begun, is_ended;
        struct json_t *object; /* of a list: the object whose members are being read */
        void *member;
        char fault[320]; /* after -EBADMSG and -errno: "FILE:LINE: fault" */
};

/* Maximum length of a file in bytes. Files are read whole. */
#define SEED_LENGTH_MAX ((size_t)256 << 20)

/* Read from a text, which is borrowed until seed_deinit(). */
void seed_init(struct seed *seed, const char *name, struct slice text);

/* Read a file. Returns 0, or -EFBIG, -ENOMEM or -errno with seed->fault. Call seed_deinit() in any case. */
int seed_open(struct seed *seed, const char *name);

void seed_deinit(struct seed *seed);

/*
 * Read the next key into the record; overwrites the record. Returns 1; 0 at the end; -ENOMEM; or -EBADMSG
 * with seed->fault, after which reading must stop.
 */
int seed_next(struct seed *seed, struct record *record);

/*
 * Set seed->fault to this text, with the line of the last key. For a key that the caller cannot use. Returns
 * -EBADMSG.
 */
int seed_refuse(struct seed *seed, struct slice what);
