/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "records/record.h"

/*
 * What a store begins with: a text with keys and values, exported or written by hand. Its first character tells which
 * of two forms it has.
 *
 * Lines of JSON, each a record, as record.h has them:
 *
 *     {"key":"greeting","value":"hello"}
 *     {"key":"lock","value":"me","deadline":1795219618274,"token":"001795219608274:00000:StateStore"}
 *
 * A list of objects, as in the statestore.json with which data flows of Azure IoT Operations are tried out:
 *
 *     [ { "factoryId": "factoryA" }, { "machineId": "machineA", "limits": { "max": 7 } } ]
 *
 * Each member there is a key with its value: a string as it is; an object, a list, a number, true or false as its JSON
 * text without blanks. An object of a list that has both "key" and "value" (or key_base64, value_base64) is a record,
 * so that a list of records can be given too.
 */
struct seed {
        const char *name; /* borrowed: of the file, for faults */
        struct slice text;
        struct buf file; /* the text where the seed has read it itself */
        size_t position;
        uint64_t line, record_line;
        bool is_list, is_begun, is_ended;
        struct json_t *object; /* of a list: the one whose members are under way */
        void *member;
        char fault[320]; /* after -EBADMSG and -errno: FILE:LINE: what is wrong with it */
};

/* Bytes of a file that is read whole. */
#define SEED_LENGTH_MAX ((size_t)256 << 20)

/* text is borrowed until seed_deinit(). */
void seed_init(struct seed *seed, const char *name, struct slice text);

/*
 * Reads the file. Returns 0, or -EFBIG, -ENOMEM or -errno with seed->fault. To be given back with seed_deinit() whatever
 * is returned.
 */
int seed_open(struct seed *seed, const char *name);

void seed_deinit(struct seed *seed);

/*
 * The next key into the record, in the place of what it held. Returns 1; 0 where there is none any more; -ENOMEM; or
 * -EBADMSG with seed->fault, after which there is no going on.
 */
int seed_next(struct seed *seed, struct record *record);

/* For a key that came last and cannot be used: makes this the fault, with its line. Returns -EBADMSG. */
int seed_refuse(struct seed *seed, struct slice what);
