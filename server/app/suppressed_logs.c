/* SPDX-License-Identifier: Apache-2.0 */

#include "app/internal.h"
#include "base/log.h"

/* A flood that goes on is told of by its own lines meanwhile, each second. */
#define TELL_AFTER_MS 2000

static void tell(uv_timer_t *timer) {
        (void)timer;
        log_tell_withheld();
}

void server_start_withheld(struct server *server) {
        uv_timer_init(&server->loop, &server->withheld_timer);
}

void server_update_withheld(struct server *server) {
        if (log_is_anything_withheld() && !uv_is_active((uv_handle_t *)&server->withheld_timer))
                uv_timer_start(&server->withheld_timer, tell, TELL_AFTER_MS, 0);
}
