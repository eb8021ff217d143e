/* SPDX-License-Identifier: Apache-2.0 */

/* Timestamps of hybrid clocks: two lines are parsed, compared, formatted and parsed again. */

#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "protocol/hlc.h"

static bool is_number(struct slice text, unsigned __int128 max) {
        unsigned __int128 value = 0;

        for (size_t i = 0; i < text.length; i++) {
                if (text.data[i] < '0' || text.data[i] > '9')
                        return false;
                value = value * 10 + (unsigned)(text.data[i] - '0');
                if (value > max)
                        return false;
        }
        return text.length > 0;
}

/* Whether the UTF-8 text has no control characters and no noncharacters. */
static bool is_sendable(struct slice text) {
        for (size_t i = 0, n; i < text.length; i += n) {
                uint8_t lead = text.data[i];
                uint32_t code;

                n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
                code = n == 1 ? lead : lead & (0x7FU >> n);
                for (size_t j = 1; j < n; j++)
                        code = code << 6 | (text.data[i + j] & 0x3FU);
                if (code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0xFDD0 && code <= 0xFDEF) ||
                    (code & 0xFFFE) == 0xFFFE)
                        return false;
        }
        return true;
}

/* Validate each part of the timestamp. */
static bool is_hlc(struct slice text) {
        struct slice wall, counter, node, rest;

        wall = slice_split(text, ':', &rest);
        if (!rest.data)
                return false;
        counter = slice_split(rest, ':', &node);
        return is_number(wall, INT64_MAX) && is_number(counter, UINT64_MAX) && node.length > 0 &&
               !memchr(node.data, ':', node.length) && slice_is_utf8(node) && is_sendable(node);
}

static void write_and_read(struct hlc hlc, enum hlc_style style) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct hlc read;

        hlc_append(&text, hlc, style);
        ASSERT(hlc_parse(buf_slice(&text), &read) == 0);
        ASSERT(hlc_compare(hlc, read) == 0);
        ASSERT(slice_equal(hlc.node, read.node) && hlc.wall_ms == read.wall_ms &&
               hlc.counter == read.counter);
        ASSERT(style != HLC_PADDED || text.length >= 15 + 1 + 5 + 1 + 1);
}

static bool read(struct slice text, struct hlc *ret_hlc) {
        bool is_read = hlc_parse(text, ret_hlc) == 0;

        ASSERT(is_read == is_hlc(text));
        if (!is_read)
                return false;

        ASSERT(ret_hlc->wall_ms >= 0 && hlc_node_is_valid(ret_hlc->node));
        write_and_read(*ret_hlc, HLC_PADDED);
        write_and_read(*ret_hlc, HLC_UNPADDED);
        return true;
}

static int sign(int order) {
        return (order > 0) - (order < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice texts[2];
        struct hlc a, b;
        bool is_a, is_b;

        texts[0] = slice_split((struct slice){ data, size }, '\n', &texts[1]);
        is_a = read(texts[0], &a);
        is_b = read(texts[1], &b);
        if (!is_a || !is_b)
                return 0;

        ASSERT(sign(hlc_compare(a, b)) == -sign(hlc_compare(b, a)));
        if (a.wall_ms != b.wall_ms)
                ASSERT((hlc_compare(a, b) < 0) == (a.wall_ms < b.wall_ms));
        else if (a.counter != b.counter)
                ASSERT((hlc_compare(a, b) < 0) == (a.counter < b.counter));
        else
                ASSERT(sign(hlc_compare(a, b)) == sign(slice_compare(a.node, b.node)));
        return 0;
}
