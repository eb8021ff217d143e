/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/hlc.h"

#include <errno.h>

bool hlc_node_is_valid(struct slice node) {
        return node.length > 0 && !memchr(node.data, ':', node.length) && slice_is_utf8(node);
}

/*
 * Whether the UTF-8 text can be sent as a user property. mosquitto closes the connection of a client that
 * sends a control character or a noncharacter of Unicode, and libmosquitto 2.0 sends it again after each
 * reconnect: mosquitto_property_add_string_pair() does not check the value.
 */
static bool is_sendable(struct slice text) {
        for (const uint8_t *at = text.data, *end = at + text.length; at < end; at++) {
                bool is_control = *at < 0x20 || *at == 0x7F || (*at == 0xC2 && at[1] < 0xA0);
                bool is_fdd0_to_fdef = *at == 0xEF && at[1] == 0xB7 && at[2] >= 0x90 && at[2] <= 0xAF;
                /* the last two of each plane, in 3 bytes or behind the first of 4 */
                bool is_last =
                        (*at & 0x0F) == 0x0F && end - at > 2 && at[1] == 0xBF && (at[2] & 0xFE) == 0xBE;

                if (is_control || is_fdd0_to_fdef || is_last)
                        return false;
        }
        return true;
}

int hlc_parse(struct slice text, struct hlc *ret_hlc) {
        struct slice wall, counter, node;
        uint64_t wall_ms, count;

        wall = slice_split(text, ':', &node);
        counter = slice_split(node, ':', &node);

        if (parse_uint64(wall, &wall_ms) < 0 || wall_ms > INT64_MAX || parse_uint64(counter, &count) < 0 ||
            !hlc_node_is_valid(node) || !is_sendable(node))
                return -EINVAL;

        *ret_hlc = (struct hlc){ .wall_ms = (int64_t)wall_ms, .counter = count, .node = node };
        return 0;
}

size_t hlc_format_numbers(char text[HLC_NUMBERS_MAX], struct hlc hlc, enum hlc_style style) {
        size_t length;

        length = format_uint64(text, (uint64_t)hlc.wall_ms, style == HLC_PADDED ? 15 : 1);
        text[length++] = ':';
        length += format_uint64(text + length, hlc.counter, style == HLC_PADDED ? 5 : 1);
        text[length++] = ':';
        return length;
}

void hlc_append(struct buf *buf, struct hlc hlc, enum hlc_style style) {
        char numbers[HLC_NUMBERS_MAX];

        buf_append(buf, numbers, hlc_format_numbers(numbers, hlc, style));
        buf_append_slice(buf, hlc.node);
}

int hlc_compare(struct hlc a, struct hlc b) {
        if (a.wall_ms != b.wall_ms)
                return a.wall_ms < b.wall_ms ? -1 : 1;
        if (a.counter != b.counter)
                return a.counter < b.counter ? -1 : 1;
        return slice_compare(a.node, b.node);
}
