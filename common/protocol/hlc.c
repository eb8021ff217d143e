/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/hlc.h"

#include <errno.h>

bool hlc_node_is_valid(struct slice node) {
        return node.length > 0 && !memchr(node.data, ':', node.length) && slice_is_utf8(node);
}

int hlc_parse(struct slice text, struct hlc *ret_hlc) {
        struct slice wall, counter, node;
        uint64_t wall_ms, count;

        wall = slice_split(text, ':', &node);
        counter = slice_split(node, ':', &node);

        if (parse_uint64(wall, &wall_ms) < 0 || wall_ms > INT64_MAX || parse_uint64(counter, &count) < 0 ||
            !hlc_node_is_valid(node))
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
