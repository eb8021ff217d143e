/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

#include "exports/exported_key.h"

enum export_reader_state {
        EXPORT_UNREAD, /* the format is not known yet */
        EXPORT_LINES,
        EXPORT_LIST_BEGIN, /* '[' was read */
        EXPORT_LIST,       /* an object was read */
        EXPORT_LIST_END,   /* ']' was read */
};

/*
 * Reads keys and values for --seed, `statestorectl import` and `statestorectl test seed`. The text
 * has one of two formats. A byte order mark of UTF-8 may precede it.
 *
 * Lines of JSON, each a key as in exported_key.h, exported or written by hand:
 *
 *     {"key":"greeting","value":"hello"}
 *     {"key":"lock","value":"me","deadline":1795219618274,"token":"001795219608274:00000:StateStore"}
 *
 * If the first character is '[': a list of objects, as in the file statestore.json for testing data
 * flows of Azure IoT Operations:
 *
 *     [ { "factoryId": "factoryA" }, { "machineId": "machineA", "limits": { "max": 7 } } ]
 *
 * Each member of such an object is a key and its value. A string is the value as it is. For an
 * object, a list, a number, true or false the value is its JSON text without blanks. An object with
 * both "key" and "value" (or key_base64, value_base64) is a key as in exported_key.h, so a
 * list may also contain these.
 */
struct export_reader {
        const char *name;  /* of the file, for messages; borrowed */
        struct slice text; /* what has been read of the file, or the text of export_reader_init() */
        FILE *file;        /* owned; NULL: none */
        char *file_line;   /* owned */
        size_t file_line_capacity;
        struct buf list;   /* owned: the list, if the file has one */
        size_t position;   /* in the text */
        uint64_t line;     /* number of the line of position, from 1 */
        uint64_t key_line; /* number of the line of the last key */
        enum export_reader_state state;
        struct json_t *object; /* of a list: the object whose members are being read */
        void *member;          /* of a list: iterator of jansson in object */
        char fault[320];       /* describes an error: "FILE: fault" or "FILE:LINE: fault" */
};

/* Read from a text, which is borrowed until export_reader_deinit(). */
void export_reader_init(struct export_reader *reader, const char *name, struct slice text);

/*
 * Read a file; "-" is stdin. Lines are read one by one, a list is read whole. Returns 0, or -errno
 * with reader->fault. Call export_reader_deinit() in any case.
 */
int export_reader_open(struct export_reader *reader, const char *name);

void export_reader_deinit(struct export_reader *reader);

/*
 * Read the next key, which overwrites *exported. Returns 1; 0 at the end; -ENOMEM; or
 * -EBADMSG with reader->fault, after which reading must stop.
 */
int export_reader_next(struct export_reader *reader, struct exported_key *exported);

/*
 * Reject the last key that export_reader_next() has read: set reader->fault to the reason, with the line of
 * the key. Returns -EBADMSG.
 */
int export_reader_reject(struct export_reader *reader, struct slice reason);
