/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Puts responders under load through their brokers, and prints lines of a name and a value: for
 * each round, the figures of each subject in the order of the command line.
 *
 * The speed of the machine varies within tenths of a second by more than the subjects differ. So a
 * round consists of many short turns, A B C, B C A, ...: each warms up, is measured, and ends when
 * all requests have their replies and all watchers are notified. With --requests a turn lasts until
 * that many requests have their replies, and is measured from its start.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bench/arguments.h"
#include "bench/fail.h"
#include "bench/load.h"
#include "bench/process.h"
#include "bench/stopwatch.h"

struct usage {
        uint64_t n_replies;
        int64_t wall_ns, responder_ns, broker_ns, load_ns;
};

struct subject {
        uint64_t responder, broker; /* process ids; their CPU time is measured */
        struct load load;
        struct usage used;  /* in the measured time of this round */
        size_t n_latencies; /* measured values of load.latencies_ns; later values belong to a warm-up */
};

struct options {
        uint64_t n_rounds, n_turns, warm_up_ms, measure_ms, patience_ms;
};

static struct usage usage_of(const struct subject *subject) {
        return (struct usage){ subject->load.n_replies, stopwatch_ns(), process_cpu_ns(subject->responder),
                               process_cpu_ns(subject->broker), process_cpu_ns(0) };
}

static void add_usage(struct usage *sum, const struct usage *begin, const struct usage *end) {
        sum->n_replies += end->n_replies - begin->n_replies;
        sum->wall_ns += end->wall_ns - begin->wall_ns;
        sum->responder_ns += end->responder_ns - begin->responder_ns;
        sum->broker_ns += end->broker_ns - begin->broker_ns;
        sum->load_ns += end->load_ns - begin->load_ns;
}

/* Wait for the first reply of the turn: without an reply there is no latency to print. */
static void await_reply(struct load *load, uint64_t n_replies, int64_t patience_ns) {
        int64_t until_ns = stopwatch_ns() + patience_ns;

        while (load->n_replies == n_replies && load->n_outstanding > 0 && stopwatch_ns() < until_ns)
                load_run(load, stopwatch_ns() + NS_PER_MS);
}

static void take_turn(struct subject *subject, const struct options *options) {
        struct load *load = &subject->load;
        bool is_counted = load->options.n_requests_max > 0;
        int64_t patience_ns = (int64_t)options->patience_ms * NS_PER_MS;
        struct usage begin, end;

        load_start(load);
        if (!is_counted)
                load_run(load, stopwatch_ns() + (int64_t)options->warm_up_ms * NS_PER_MS);

        load->latencies_ns.n_values = subject->n_latencies;
        begin = usage_of(subject);
        load_run(load, is_counted ? INT64_MAX : stopwatch_ns() + (int64_t)options->measure_ms * NS_PER_MS);
        await_reply(load, begin.n_replies, patience_ns);
        end = usage_of(subject);
        add_usage(&subject->used, &begin, &end);
        subject->n_latencies = load->latencies_ns.n_values;

        load_stop(load);
        load_run(load, stopwatch_ns() + patience_ns);
}

static void print_percentile(const struct samples *latencies_ns, const char *name, double share) {
        printf("%s %.1f\n", name, (double)samples_percentile(latencies_ns, share) / 1000);
}

static void print_cost(const char *name, int64_t cpu_ns, const struct usage *used) {
        if (used->n_replies > 0)
                printf("%s %.2f\n", name, (double)cpu_ns / 1000 / (double)used->n_replies);
}

static void print_replies(const struct load *load) {
        printf("found %" PRIu64 "\n", load->n_found);
        printf("not_found %" PRIu64 "\n", load->n_not_found);
        printf("errors %" PRIu64 "\n", load->n_errors);
        printf("without_reply %" PRIu64 "\n", load->n_outstanding);
        printf("unnotified %" PRIu64 "\n", load->n_unnotified);
}

static void print(struct subject *subject) {
        struct samples *latencies_ns = &subject->load.latencies_ns;
        const struct usage *used = &subject->used;
        double seconds = (double)used->wall_ns / NS_PER_S;

        printf("requests %" PRIu64 "\n", used->n_replies);
        printf("seconds %.3f\n", seconds);
        printf("throughput %.1f\n", (double)used->n_replies / seconds);

        latencies_ns->n_values = subject->n_latencies;
        samples_sort(latencies_ns);
        print_percentile(latencies_ns, "p50_us", 0.5);
        print_percentile(latencies_ns, "p90_us", 0.9);
        print_percentile(latencies_ns, "p99_us", 0.99);
        print_percentile(latencies_ns, "max_us", 1);

        print_cost("responder_cpu_us", used->responder_ns, used);
        print_cost("broker_cpu_us", used->broker_ns, used);
        print_cost("load_cpu_us", used->load_ns, used);
        print_replies(&subject->load);
}

static void measure(struct subject *subjects, size_t n_subjects, const struct options *options) {
        uint64_t first = 0; /* every subject is first equally often */

        for (uint64_t i = 0; i < options->n_rounds; i++) {
                for (uint64_t turn = 0; turn < options->n_turns; turn++, first++)
                        for (size_t k = 0; k < n_subjects; k++)
                                take_turn(&subjects[(first + k) % n_subjects], options);
                for (size_t k = 0; k < n_subjects; k++) {
                        print(&subjects[k]);
                        subjects[k].used = (struct usage){ 0 };
                        subjects[k].n_latencies = 0;
                }
        }
}

static void read_subject(struct subject *subject, uint64_t *ret_port, const char *text) {
        int n_read = 0;

        if (sscanf(text, "%" SCNu64 ",%" SCNu64 ",%" SCNu64 "%n", ret_port, &subject->responder,
                   &subject->broker, &n_read) != 3 ||
            text[n_read] != '\0')
                fail("--subject: PORT,RESPONDER,BROKER was expected, not \"%s\"", text);
}

int main(int n_arguments, char **arguments) {
        struct load_options load_options = {
                .n_clients = 1, .depth = 1, .n_keys = 10000, .get_percent = 50
        };
        struct options options = { .n_rounds = 1,
                                   .n_turns = 1,
                                   .warm_up_ms = 300,
                                   .measure_ms = 2000,
                                   .patience_ms = LOAD_PATIENCE_NS / NS_PER_MS };
        struct subject subjects[ARGUMENT_TEXTS_MAX] = { 0 };
        struct argument_texts texts = { 0 };
        const char *order = "uniform";

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "subject", ARGUMENT_TEXTS, &texts },
                               { "clients", ARGUMENT_NUMBER, &load_options.n_clients },
                               { "depth", ARGUMENT_NUMBER, &load_options.depth },
                               { "keys", ARGUMENT_NUMBER, &load_options.n_keys },
                               { "order", ARGUMENT_TEXT, &order },
                               { "get-percent", ARGUMENT_NUMBER, &load_options.get_percent },
                               { "requests", ARGUMENT_NUMBER, &load_options.n_requests_max },
                               { "watchers", ARGUMENT_NUMBER, &load_options.n_watchers },
                               { "rounds", ARGUMENT_NUMBER, &options.n_rounds },
                               { "turns", ARGUMENT_NUMBER, &options.n_turns },
                               { "warm-up-ms", ARGUMENT_NUMBER, &options.warm_up_ms },
                               { "measure-ms", ARGUMENT_NUMBER, &options.measure_ms },
                               { "patience-ms", ARGUMENT_NUMBER, &options.patience_ms },
                               { 0 },
                       });
        load_options.order = key_order_from_string(order);

        for (size_t i = 0; i < texts.n_texts; i++) {
                read_subject(&subjects[i], &load_options.port, texts.texts[i]);
                load_open(&subjects[i].load, &load_options);
        }
        measure(subjects, texts.n_texts, &options);
        for (size_t i = 0; i < texts.n_texts; i++)
                load_close(&subjects[i].load);
        return 0;
}
