/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/fixed_reply.h"

void fixed_reply_fill(struct message *message) {
        *message = (struct message){
                /*
                 * 56 bytes: the mean of +OK (5 with its line end) and of a value of 100 bytes (108
                 * with its length)
                 */
                .payload = SLICE_LITERAL("$49\r\n0123456789012345678901234567890123456789012345678\r\n"),
                .qos = 1,
                .has_expiry = true,
                .expiry_s = 10,
                .n_user_properties = 4,
                .user_properties = {
                        { SLICE_LITERAL("__srcId"), SLICE_LITERAL("StateStore") },
                        { SLICE_LITERAL("__protVer"), SLICE_LITERAL("1.0") },
                        { SLICE_LITERAL("__stat"), SLICE_LITERAL("200") },
                        { SLICE_LITERAL("__ts"), SLICE_LITERAL("001696374425000:00000:StateStore") },
                },
        };
}
