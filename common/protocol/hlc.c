/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/hlc.h"

#include <errno.h>

#include "base/parse.h"

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

void hlc_append(struct buf *buf, struct hlc hlc, enum hlc_style style) {
        char head[2 * (UINT64_DIGITS_MAX + 1)];
        size_t length;

        length = format_uint64(head, (uint64_t)hlc.wall_ms, style == HLC_PADDED ? 15 : 1);
        head[length++] = ':';
        length += format_uint64(head + length, hlc.counter, style == HLC_PADDED ? 5 : 1);
        head[length++] = ':';

        buf_append(buf, head, length);
        buf_append_slice(buf, hlc.node);
}

int hlc_compare(struct hlc a, struct hlc b) {
        if (a.wall_ms != b.wall_ms)
                return a.wall_ms < b.wall_ms ? -1 : 1;
        if (a.counter != b.counter)
                return a.counter < b.counter ? -1 : 1;
        return slice_compare(a.node, b.node);
}
