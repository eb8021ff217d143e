/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Puts a responder under load through its broker and prints what was measured, a name and a value a line. Without
 * --requests: warms up, measures for a while, and waits for the answers that are still to come.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bench/arguments.h"
#include "bench/load.h"
#include "bench/process.h"
#include "bench/stopwatch.h"

/* An answer that has not come by then will not come. */
#define PATIENCE_NS (10 * NS_PER_S)

/* Whose computing is measured beside the load. */
struct costs {
        uint64_t responder, broker; /* process ids, 0: not wanted */
        int64_t responder_ns, broker_ns, load_ns;
};

struct window {
        int64_t begin_ns, end_ns;
        uint64_t n_answered;
        struct costs costs;
};

static int64_t cpu_of(uint64_t pid) {
        return pid ? process_cpu_ns(pid) : 0;
}

/* Called twice: the second time gives what has been used since the first. */
static void read_costs(struct costs *costs) {
        costs->responder_ns = cpu_of(costs->responder) - costs->responder_ns;
        costs->broker_ns = cpu_of(costs->broker) - costs->broker_ns;
        costs->load_ns = process_cpu_ns(0) - costs->load_ns;
}

static void begin(struct window *window, struct load *load) {
        load->latencies_ns.n_values = 0;
        read_costs(&window->costs);
        window->n_answered = load->n_answered;
        window->begin_ns = stopwatch_ns();
}

static void end(struct window *window, const struct load *load) {
        window->end_ns = stopwatch_ns();
        window->n_answered = load->n_answered - window->n_answered;
        read_costs(&window->costs);
}

static void measure(struct load *load, uint64_t warm_up_ms, uint64_t measure_ms, struct window *window) {
        bool is_counted = load->options.n_requests_max > 0;

        load_start(load);
        if (!is_counted)
                load_run(load, stopwatch_ns() + (int64_t)warm_up_ms * NS_PER_MS);
        begin(window, load);
        load_run(load, is_counted ? INT64_MAX : stopwatch_ns() + (int64_t)measure_ms * NS_PER_MS);
        end(window, load);
}

static void print_percentile(const struct load *load, const char *name, double share) {
        printf("%s %.1f\n", name, (double)samples_percentile(&load->latencies_ns, share) / 1000);
}

static void print_cost(const char *name, int64_t cpu_ns, const struct window *window) {
        if (window->n_answered > 0)
                printf("%s %.2f\n", name, (double)cpu_ns / 1000 / (double)window->n_answered);
}

static void print(struct load *load, const struct window *window) {
        double seconds = (double)(window->end_ns - window->begin_ns) / NS_PER_S;

        printf("requests %" PRIu64 "\n", window->n_answered);
        printf("seconds %.3f\n", seconds);
        printf("throughput %.1f\n", (double)window->n_answered / seconds);

        samples_sort(&load->latencies_ns);
        print_percentile(load, "p50_us", 0.5);
        print_percentile(load, "p90_us", 0.9);
        print_percentile(load, "p99_us", 0.99);
        print_percentile(load, "max_us", 1);

        if (window->costs.responder)
                print_cost("responder_cpu_us", window->costs.responder_ns, window);
        if (window->costs.broker)
                print_cost("broker_cpu_us", window->costs.broker_ns, window);
        print_cost("load_cpu_us", window->costs.load_ns, window);
}

static void print_answers(const struct load *load) {
        printf("found %" PRIu64 "\n", load->n_found);
        printf("not_found %" PRIu64 "\n", load->n_not_found);
        printf("errors %" PRIu64 "\n", load->n_errors);
        printf("unanswered %" PRIu64 "\n", load->n_outstanding);
}

int main(int n_arguments, char **arguments) {
        struct load_options options = {
                .port = 1883, .n_clients = 1, .depth = 1, .n_keys = 10000, .get_percent = 50
        };
        uint64_t warm_up_ms = 300, measure_ms = 2000;
        struct window window = { 0 };
        const char *order = "uniform";
        struct load load;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "port", ARGUMENT_NUMBER, &options.port },
                               { "clients", ARGUMENT_NUMBER, &options.n_clients },
                               { "depth", ARGUMENT_NUMBER, &options.depth },
                               { "keys", ARGUMENT_NUMBER, &options.n_keys },
                               { "order", ARGUMENT_TEXT, &order },
                               { "get-percent", ARGUMENT_NUMBER, &options.get_percent },
                               { "requests", ARGUMENT_NUMBER, &options.n_requests_max },
                               { "expire-at-ms", ARGUMENT_NUMBER, &options.expire_at_ms },
                               { "expire-within-ms", ARGUMENT_NUMBER, &options.expire_within_ms },
                               { "warm-up-ms", ARGUMENT_NUMBER, &warm_up_ms },
                               { "measure-ms", ARGUMENT_NUMBER, &measure_ms },
                               { "responder", ARGUMENT_NUMBER, &window.costs.responder },
                               { "broker", ARGUMENT_NUMBER, &window.costs.broker },
                               { 0 },
                       });
        options.order = key_order_from_string(order);

        load_open(&load, &options);
        measure(&load, warm_up_ms, measure_ms, &window);
        print(&load, &window);

        load_stop(&load);
        load_run(&load, stopwatch_ns() + PATIENCE_NS);
        print_answers(&load);
        load_close(&load);
        return 0;
}
