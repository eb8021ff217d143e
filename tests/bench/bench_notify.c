/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Measures the time until the last of many watchers is notified of a SET. With --fan-out it
 * measures the yardstick: the time until the last of as many subscribers has received one message
 * of the same size from the broker.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "bench/arguments.h"
#include "bench/asker.h"
#include "bench/fail.h"
#include "bench/keys.h"
#include "bench/samples.h"
#include "bench/stopwatch.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

#define VALUE_LENGTH   100
#define EVENTS_AT_ONCE 256
#define PATIENCE_MS    120000

struct options {
        uint64_t port, n_watchers, n_rounds;
        bool is_fan_out;
        bool is_direct; /* the plugin delivers: watchers do not subscribe */
};

struct notify {
        struct options options;
        struct asker *watchers;
        struct asker setter;
        int epoll;
        uint64_t serial;     /* for correlation data */
        uint64_t n_replies;  /* requests */
        uint64_t n_notified; /* in this round */
        uint8_t key[KEY_LENGTH];
        uint8_t value[VALUE_LENGTH];
        struct buf topic;   /* --fan-out: as long as a notify topic is */
        struct buf payload; /* a notification of the value */
};

static void on_message(void *userdata, const struct message *message) {
        struct notify *notify = userdata;

        if (message->correlation_data.data)
                notify->n_replies++;
        else if (slice_equal(message->payload, buf_slice(&notify->payload)))
                notify->n_notified++;
        else
                fail("a message is not the expected notification");
}

static void read_some(struct notify *notify) {
        struct epoll_event events[EVENTS_AT_ONCE];
        int n = epoll_wait(notify->epoll, events, EVENTS_AT_ONCE, PATIENCE_MS);

        if (n == 0)
                fail("only %" PRIu64 " of %" PRIu64 " watchers were notified", notify->n_notified,
                     notify->options.n_watchers);
        for (int i = 0; i < n; i++) {
                struct asker *asker = events[i].data.ptr;

                peer_read(&asker->peer, on_message, notify);
                peer_flush(&asker->peer);
        }
}

/* Send a request; the reply is counted when it arrives. */
static void ask(struct notify *notify, struct asker *asker, const struct slice *words, size_t n_words) {
        uint64_t ticket[2] = { (uint64_t)stopwatch_ns(), ++notify->serial };

        asker_ask(asker, words, n_words, (struct slice){ (uint8_t *)ticket, sizeof(ticket) });
        peer_flush(&asker->peer);
}

static struct slice key_of(const struct notify *notify) {
        return (struct slice){ notify->key, KEY_LENGTH };
}

static void connect_one(struct notify *notify, struct asker *asker, uint32_t number) {
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = asker };

        asker_connect(asker, notify->options.port, number);
        if (epoll_ctl(notify->epoll, EPOLL_CTL_ADD, asker->peer.fd, &event) < 0)
                fail("cannot watch a connection: %m");
}

static void subscribe(struct notify *notify, struct asker *watcher) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };

        if (notify->options.is_fan_out)
                buf_append_slice(&topic, buf_slice(&notify->topic));
        else
                topic_append_notify(&topic, slice_from_string(watcher->id), key_of(notify));
        buf_append(&topic, "", 1);
        peer_subscribe(&watcher->peer, (const char *)topic.data);
}

static void connect_all(struct notify *notify) {
        const struct slice words[] = { SLICE_LITERAL("KEYNOTIFY"), key_of(notify) };

        connect_one(notify, &notify->setter, (uint32_t)notify->options.n_watchers);
        for (uint32_t i = 0; i < notify->options.n_watchers; i++) {
                struct asker *watcher = &notify->watchers[i];

                connect_one(notify, watcher, i);
                if (notify->options.is_fan_out || !notify->options.is_direct)
                        subscribe(notify, watcher);
                if (!notify->options.is_fan_out)
                        ask(notify, watcher, words, 2);
        }
        while (!notify->options.is_fan_out && notify->n_replies < notify->options.n_watchers)
                read_some(notify);
}

static void fan_out(struct notify *notify) {
        peer_publish(
                &notify->setter.peer,
                &(struct message){
                        .topic = buf_slice(&notify->topic),
                        .payload = buf_slice(&notify->payload),
                        .n_user_properties = 3,
                        .user_properties = {
                                { SLICE_LITERAL("__srcId"), SLICE_LITERAL("StateStore") },
                                { SLICE_LITERAL("__protVer"), SLICE_LITERAL("1.0") },
                                { SLICE_LITERAL("__ts"), SLICE_LITERAL("001696374425000:00000:StateStore") },
                        },
                });
        peer_flush(&notify->setter.peer);
}

/* Return the nanoseconds until the last watcher is notified. */
static int64_t run_round(struct notify *notify) {
        const struct slice words[] = { SLICE_LITERAL("SET"),
                                       key_of(notify),
                                       { notify->value, VALUE_LENGTH } };
        int64_t begin_ns = stopwatch_ns(), end_ns;

        notify->n_notified = 0;
        notify->n_replies = 0;
        if (notify->options.is_fan_out)
                fan_out(notify);
        else
                ask(notify, &notify->setter, words, 3);

        while (notify->n_notified < notify->options.n_watchers)
                read_some(notify);
        end_ns = stopwatch_ns();

        while (!notify->options.is_fan_out && notify->n_replies == 0)
                read_some(notify);
        return end_ns - begin_ns;
}

static void init(struct notify *notify) {
        notify->epoll = epoll_create1(EPOLL_CLOEXEC);
        notify->watchers = calloc(notify->options.n_watchers, sizeof(*notify->watchers));
        if (notify->epoll < 0 || !notify->watchers)
                fail("cannot start: %m");

        key_write(notify->key, 1);
        memset(notify->value, 'v', sizeof(notify->value));
        buf_append_string(&notify->payload, "*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n");
        resp3_append_blob(&notify->payload, (struct slice){ notify->value, VALUE_LENGTH });
        buf_append_string(&notify->topic, "bench/");
        while (notify->topic.length < topic_notify_length(sizeof("bench-100") - 1, KEY_LENGTH))
                buf_append(&notify->topic, "t", 1);
}

static void deinit(struct notify *notify) {
        for (size_t i = 0; i < notify->options.n_watchers; i++)
                asker_close(&notify->watchers[i]);
        asker_close(&notify->setter);
        free(notify->watchers);
        buf_deinit(&notify->payload);
        buf_deinit(&notify->topic);
}

int main(int n_arguments, char **arguments) {
        struct notify notify = { .options = { .port = 1883, .n_watchers = 1, .n_rounds = 10 } };
        CLEANUP(samples_deinit) struct samples samples = { 0 };

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "port", ARGUMENT_NUMBER, &notify.options.port },
                               { "watchers", ARGUMENT_NUMBER, &notify.options.n_watchers },
                               { "rounds", ARGUMENT_NUMBER, &notify.options.n_rounds },
                               { "fan-out", ARGUMENT_SWITCH, &notify.options.is_fan_out },
                               { "direct", ARGUMENT_SWITCH, &notify.options.is_direct },
                               { 0 },
                       });

        init(&notify);
        connect_all(&notify);
        run_round(&notify); /* not measured: buffers grow */
        for (uint64_t i = 0; i < notify.options.n_rounds; i++)
                samples_add(&samples, (uint64_t)run_round(&notify));

        samples_sort(&samples);
        printf("last_notified_us %.1f\n", (double)samples_percentile(&samples, 0.5) / 1000);
        printf("last_notified_max_us %.1f\n", (double)samples_percentile(&samples, 1) / 1000);
        deinit(&notify);
        return 0;
}
