/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames to the store, frames to the plugin, and WELCOME. What can be read, encoded again, must give
 * the same bytes. So each byte means something, and no reader passes the end.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "protocol/frame.h"
#include "protocol/handshake.h"

static void check_properties(struct slice properties) {
        CLEANUP(buf_deinit) struct buf again = { 0 };
        struct slice rest = properties;
        struct user_property property;

        while (frame_property_next(&rest, &property))
                frame_property_append(&again, property.name, property.value);
        ASSERT(!buf_failed(&again));
        ASSERT(slice_equal(buf_slice(&again), properties));
}

static void check_to_store(struct slice input) {
        CLEANUP(buf_deinit) struct buf again = { 0 };
        struct frame_to_store_record record;
        struct frame_to_store frame;
        size_t length;
        int r = frame_to_store_read(input, &frame);

        if (r < 0) {
                ASSERT(r == -EBADMSG);
                return;
        }
        ASSERT(frame.next_record_number > 0);
        frame_to_store_append(&again, &frame);
        while (frame_to_store_next(&frame, &record)) {
                if (record.kind == FRAME_REQUEST)
                        check_properties(record.request.properties);
                length = again.length;
                frame_to_store_append_record(&again, &record);
                ASSERT(again.length - length == frame_to_store_record_size(&record));
        }
        buf_append_slice(&again, frame.records); /* malformed, or empty */
        ASSERT(slice_equal(buf_slice(&again), input));
}

static void check_notification(const struct frame_notification *notification) {
        CLEANUP(buf_deinit) struct buf recipients = { 0 };

        check_properties(notification->properties);
        ASSERT(notification->sequence > 0);
        ASSERT(notification->index + (uint64_t)frame_n_recipients(notification) <= UINT32_MAX);
        for (size_t i = 0; i < frame_n_recipients(notification); i++)
                frame_recipient_append(&recipients, frame_recipient(notification, i));
        ASSERT(slice_equal(buf_slice(&recipients), notification->recipients));
}

static void check_to_plugin(struct slice input) {
        CLEANUP(buf_deinit) struct buf again = { 0 };
        struct frame_to_plugin_record record;
        struct slice records;
        int r = frame_to_plugin_read(input, &records);
        size_t length;

        if (r < 0) {
                ASSERT(r == -EBADMSG);
                return;
        }
        frame_to_plugin_append(&again);
        while (frame_to_plugin_next(&records, &record)) {
                if (record.kind == FRAME_REPLY)
                        check_properties(record.reply.properties);
                else if (record.kind == FRAME_NOTIFICATION)
                        check_notification(&record.notification);
                length = again.length;
                frame_to_plugin_append_record(&again, &record);
                ASSERT(again.length - length == frame_to_plugin_record_size(&record));
        }
        ASSERT(slice_equal(buf_slice(&again), input));
}

static void check_welcome(struct slice input) {
        CLEANUP(buf_deinit) struct buf again = { 0 }, connections = { 0 };
        struct handshake_connection connection;
        struct handshake_welcome welcome;
        struct slice rest;

        if (handshake_welcome_read(input, &welcome) < 0)
                return;
        rest = welcome.connections;
        while (handshake_next_connection(&rest, &connection))
                handshake_connection_append(&connections, &connection);
        ASSERT(slice_equal(buf_slice(&connections), welcome.connections));
        handshake_welcome_append(&again, &welcome);
        ASSERT(slice_equal(buf_slice(&again), input));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = text_copy((struct slice){ data, size });

        check_to_store(input);
        check_to_plugin(input);
        check_welcome(input);
        text_free(&input);
        return 0;
}
