/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state/change_set.h"

/*
 * What is stored under which key of etcd. A key is a prefix, the name of a table, and digits:
 *
 *     header                     struct etcd_header
 *     entry/DIGEST               an entry
 *     registration/DIGEST        a registration
 *     reply/NUMBER               the replies of a commit; NUMBER is that of the last one
 *     execution/PLACE            EXECUTION_KEY_PLACES places; PLACE is the first one
 *     notification/SEQUENCE      the notifications of a commit; SEQUENCE is that of the last one
 *
 * A DIGEST is a keyed hash of the key, or of client and key, in 32 hexadecimal digits. So all keys
 * of etcd are short, and the entries are spread evenly: ranges of digests of the same size have
 * about the same number of entries. Loading reads such ranges. The other way, a limited number of
 * keys from a position on, makes etcd visit all later keys each time. Numbers have 16 hexadecimal
 * digits.
 *
 * A value is one or more rows in the form of storage/stored_form.h as blobs, or a header, and a checksum
 * of the key and of these bytes.
 */

/* Number of executions in one value: less keys, because etcd limits the operations of a transaction. */
#define EXECUTION_KEY_PLACES 32
#define N_EXECUTION_KEYS     (EXECUTIONS_PLACES / EXECUTION_KEY_PLACES)

void etcd_key_append_header(struct buf *buf, const char *prefix);

/* The key whose value has the row. hash_key: of the header. */
void etcd_key_append(struct buf *buf, const char *prefix, const struct hash_key *hash_key,
                     const struct row *row);

/* The key of this number; also the beginning of the digests that begin with it. */
void etcd_key_append_number(struct buf *buf, const char *prefix, enum row_type type, uint64_t number);

/*
 * The end of the range of all keys of a table: behind the digits. So a store whose prefix is a table
 * of another one, "/statestore/entry/", has its keys outside.
 */
void etcd_key_append_end(struct buf *buf, const char *prefix, enum row_type type);

/* Append a row as a blob. */
void etcd_value_append(struct buf *buf, const struct row *row);

/*
 * Append the checksum of a key, which begins at `key`, and of its value, from `value` to the end.
 * Both are offsets.
 */
void etcd_value_seal(struct buf *buf, size_t key, size_t value);

/* Return the value without its checksum in *ret_content, borrowed. Returns 0 or -EBADMSG. */
int etcd_value_open(struct slice key, struct slice value, struct slice *ret_content);
