/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"
#include "protocol/message.h"

/*
 * Frames between store and plugin (protocol/companion.h defines their meaning). No I/O. Reading
 * does not allocate: all slices of what is read borrow from the frame. Integers are in big endian;
 * protocol/wire.h defines blob and text. Unknown flags, kinds and versions are errors.
 *
 * No record of a malformed frame is processed. The store makes an item of each record while it reads
 * the frame, and drops the items if a record is malformed: frame_to_store_next() is the only check.
 * The plugin publishes what it reads, and cannot take it back: frame_to_plugin_read() checks all
 * records first, and frame_to_plugin_next() cannot fail afterwards.
 *
 * Appending to a buf: check buf_failed() for lack of memory. The caller ensures the limits of text
 * and blob.
 */

/* 1. User properties: for each property its name and value, two texts, in their order. */

void frame_property_append(struct buf *properties, struct slice name, struct slice value);
void frame_properties_append(struct buf *properties, const struct message *message);

/* Remove the first property from the bytes and return true; false: there is none left. */
bool frame_property_next(struct slice *properties, struct user_property *ret_property);

/*
 * 2. A frame to the store:
 *
 *   bytes
 *      1  COMPANION_VERSION_NUMBER
 *      8  number of the frame: 1 with each HELLO, and one more with each frame
 *      8  number of the first record; without records, of the next one
 *      8  published: the plugin has published all changes up to this sequence
 *      8  n_too_many, 8 n_unavailable, 8 n_dropped, 8 n_denied: see struct frame_counters
 *         records, with ascending numbers without gaps
 *
 *   a record:
 *      1  FRAME_REQUEST                       1  FRAME_DISCONNECTED
 *      1  flags                               1  flags: 1 slow watcher
 *      8  connection                          8  connection
 *   text  client id                        text  client id
 *   opt.  user name
 *   opt.  Response Topic
 *   opt.  Correlation Data
 *   blob  user properties
 *   blob  payload
 *
 * Flags of a request: the QoS. opt.: a byte 1 and a text, or a byte 0 if it is absent.
 */

enum frame_to_store_kind {
        FRAME_REQUEST = 1,
        FRAME_DISCONNECTED = 2,
};

struct frame_request {
        uint8_t qos;
        struct slice username, response_topic, correlation_data; /* data NULL: absent */
        struct slice properties;                                 /* frame_property_next() */
        struct slice payload;
};

struct frame_to_store_record {
        enum frame_to_store_kind kind;
        uint64_t number;     /* set when it is read: a frame contains the number of its first record only */
        uint64_t connection; /* above 0 */
        struct slice client_id;
        union {
                struct frame_request request;
                bool is_slow_watcher; /* FRAME_DISCONNECTED: the plugin has disconnected the client */
        };
};

/* What the plugin has counted since the broker was started. */
struct frame_counters {
        uint64_t n_too_many;    /* requests that exceeded their client's share (COMPANION_ERROR_TOO_MANY) */
        uint64_t n_unavailable; /* requests that waited too long (COMPANION_ERROR_UNAVAILABLE) */
        /*
         * Messages on the invoke topic that the plugin has not taken: wills at QoS 0 and 1, and messages
         * through a listener without the plugin.
         */
        uint64_t n_dropped;
        uint64_t n_denied; /* requests for a reply to a topic where the plugin may not publish */
};

struct frame_to_store {
        uint64_t frame_number;
        uint64_t next_record_number; /* of the first record in `records`, or of the first in a later frame */
        uint64_t published;          /* the plugin has published all changes up to this sequence */
        struct frame_counters counters;
        struct slice records; /* frame_to_store_next() */
};

#define FRAME_TO_STORE_HEADER_SIZE 57

/* Append a header, or a record. */
void frame_to_store_append(struct buf *buf, const struct frame_to_store *header);
void frame_to_store_append_record(struct buf *buf, const struct frame_to_store_record *record);

/* The number of bytes that frame_to_store_append_record() appends. */
size_t frame_to_store_record_size(const struct frame_to_store_record *record);

/*
 * Parse the header of a frame. Returns 0, or -EBADMSG if it is malformed, `frame_number` or
 * `next_record_number` is 0, or the numbers of the records could exceed UINT64_MAX.
 */
int frame_to_store_read(struct slice bytes, struct frame_to_store *ret_frame);

/*
 * Remove the first record from the frame, whose next_record_number grows by 1, and return true. false:
 * there is none left; or the next one is malformed, and stays in the bytes.
 */
bool frame_to_store_next(struct frame_to_store *frame, struct frame_to_store_record *ret_record);

/*
 * 3. A frame to the plugin:
 *
 *   bytes
 *      1  COMPANION_VERSION_NUMBER
 *         records
 *
 *   a record:
 *      1  FRAME_REPLY                  1  FRAME_NOTIFICATION       1  FRAME_KICK     1  FRAME_END
 *      1  flags                        1  flags: 1 last            1  flags: 0       1  flags: 0
 *      8  number                       8  sequence                 8  connection     8  number
 *   blob  user properties              4  index                                      8  work_ns
 *   blob  payload                   blob  key
 *                                   blob  recipients, 8 bytes each
 *                                   blob  user properties
 *                                   blob  payload
 *
 * Flags of a reply: 3 enum frame_tracking; 4 the plugin publishes the message (otherwise the blobs
 * are empty).
 */

enum frame_to_plugin_kind {
        FRAME_REPLY = 1,
        FRAME_NOTIFICATION = 2,
        FRAME_KICK = 3,
        FRAME_END = 4,
};

/* Whether the connection of the request is tracked from now on. */
enum frame_tracking { FRAME_TRACKING_UNCHANGED, FRAME_TRACKED, FRAME_UNTRACKED };

struct frame_reply {
        uint64_t record_number; /* of the request; above 0 */
        enum frame_tracking tracking;
        bool has_message;
        struct slice properties; /* user properties, in their order; the plugin adds all other properties */
        struct slice payload;
};

/* The recipients `index` and following of a change. */
struct frame_notification {
        uint64_t sequence; /* of the change; above 0 */
        uint32_t index;    /* the number of recipients in the earlier records of this change */
        bool is_last;      /* no further record of this change follows */
        struct slice key;
        struct slice recipients; /* frame_recipient() */
        struct slice properties;
        struct slice payload;
};

struct frame_to_plugin_record {
        enum frame_to_plugin_kind kind;
        union {
                struct frame_reply reply;
                struct frame_notification notification;
                uint64_t connection; /* FRAME_KICK */
                struct {
                        uint64_t record_number; /* FRAME_END: all records up to it have ended; 0: none */
                        uint64_t work_ns;       /* of the batch with these records, without commits */
                } end;
        };
};

#define FRAME_TO_PLUGIN_HEADER_SIZE 1

/* Append what precedes the records, or a record. */
void frame_to_plugin_append(struct buf *buf);
void frame_to_plugin_append_record(struct buf *buf, const struct frame_to_plugin_record *record);

/* The number of bytes that frame_to_plugin_append_record() appends. */
size_t frame_to_plugin_record_size(const struct frame_to_plugin_record *record);

/* Append a recipient to the bytes for frame_notification.recipients. */
#define FRAME_RECIPIENT_SIZE 8
void frame_recipient_append(struct buf *recipients, uint64_t connection);

size_t frame_n_recipients(const struct frame_notification *notification);

/* Return the connection of recipient i, which is below frame_n_recipients(). */
uint64_t frame_recipient(const struct frame_notification *notification, size_t i);

/*
 * Parse a frame. *ret_records: the bytes of its records. Returns 0, or -EBADMSG if the frame is
 * malformed, a number or sequence is 0, or an index plus number of recipients exceeds UINT32_MAX.
 */
int frame_to_plugin_read(struct slice bytes, struct slice *ret_records);

/* Remove the first record from the bytes and return true; false: there is none left. */
bool frame_to_plugin_next(struct slice *records, struct frame_to_plugin_record *ret_record);
