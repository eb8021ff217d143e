/* SPDX-License-Identifier: Apache-2.0 */

#include "support/etcd_process.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "etcd/client.h"

#define START_TRIES 10

/*
 * etcd takes no port 0. Another process may take this port first: then etcd ends, and another port
 * is tried.
 */
static unsigned int free_port(void) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        cr_assert_geq(fd, 0);
        cr_assert_eq(bind(fd, (struct sockaddr *)&address, length), 0);
        cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
        close(fd);
        return ntohs(address.sin_port);
}

__attribute__((noreturn)) static void execute_etcd(const struct etcd_process *process, pid_t parent) {
        char cluster[128], log[96], certificate[96], key[96];
        const char *arguments[32] = { "etcd",
                                      "--data-dir",
                                      process->directory,
                                      "--listen-client-urls",
                                      process->url,
                                      "--advertise-client-urls",
                                      process->url,
                                      "--listen-peer-urls",
                                      process->peer_url,
                                      "--initial-advertise-peer-urls",
                                      process->peer_url,
                                      "--initial-cluster",
                                      cluster,
                                      "--heartbeat-interval",
                                      "20",
                                      "--election-timeout",
                                      "200",
                                      process->option };
        const char *tls[] = { "--cert-file",       certificate, "--key-file",        key,
                              "--trusted-ca-file", certificate, "--client-cert-auth" };
        int fd;

        snprintf(certificate, sizeof(certificate), "%s/certificate.pem", process->directory);
        snprintf(key, sizeof(key), "%s/key.pem", process->directory);
        if (process->has_tls)
                memcpy(&arguments[17], tls, sizeof(tls));
        snprintf(cluster, sizeof(cluster), "default=%s", process->peer_url);
        snprintf(log, sizeof(log), "%s/log", process->directory);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(1);
        fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execvp("etcd", (char *const *)arguments);
        _exit(127);
}

/* Start etcd. Returns whether it answers; false: it has ended. */
static bool start_once(struct etcd_process *process) {
        const char *endpoints[] = { process->url };
        char certificate[96], key[96];
        struct etcd_config config = {
                .endpoints = endpoints, .n_endpoints = 1, .timeout_ms = 5000, .max_reply_bytes = 1 << 20
        };
        Etcd__RangeRequest request = ETCD__RANGE_REQUEST__INIT;
        const ProtobufCMessage *response;
        struct etcd_client *client;
        pid_t parent = getpid();
        int r = -ENOTCONN;

        snprintf(certificate, sizeof(certificate), "%s/certificate.pem", process->directory);
        snprintf(key, sizeof(key), "%s/key.pem", process->directory);
        if (process->has_tls) {
                config.ca_file = config.certificate_file = certificate;
                config.key_file = key;
        }
        request.key = etcd_bytes(SLICE_LITERAL("key"));
        process->pid = fork();
        cr_assert_geq(process->pid, 0);
        if (process->pid == 0)
                execute_etcd(process, parent);

        cr_assert_eq(etcd_client_new(&client, &config), 0);
        /* With users, etcd answers by a refusal. */
        while (r != 0 && r != -EACCES && waitpid(process->pid, NULL, WNOHANG) == 0) {
                usleep(10000);
                r = etcd_call(client, ETCD_RANGE, &request.base, &response);
        }
        etcd_client_free(client);
        return r == 0 || r == -EACCES;
}

/* Start etcd in its directory, on free ports. */
static void start(struct etcd_process *process) {
        const char *scheme = process->has_tls ? "https" : "http";
        bool is_started = false;

        for (size_t i = 0; i < START_TRIES && !is_started; i++) {
                snprintf(process->url, sizeof(process->url), "%s://127.0.0.1:%u", scheme, free_port());
                snprintf(process->peer_url, sizeof(process->peer_url), "http://127.0.0.1:%u", free_port());
                is_started = start_once(process);
        }
        cr_assert(is_started, "etcd does not start: see %s/log", process->directory);
}

void etcd_process_start(struct etcd_process *process, const char *option) {
        *process = (struct etcd_process){ .directory = "/tmp/statestore-etcd-XXXXXX", .option = option };
        cr_assert_not_null(mkdtemp(process->directory));
        start(process);
}

void etcd_process_start_tls(struct etcd_process *process) {
        char command[512];

        *process = (struct etcd_process){ .directory = "/tmp/statestore-etcd-XXXXXX", .has_tls = true };
        cr_assert_not_null(mkdtemp(process->directory));
        snprintf(command, sizeof(command),
                 "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                 "-subj /CN=test -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem "
                 "2>log",
                 process->directory);
        cr_assert_eq(system(command), 0, "no certificate: see %s/log", process->directory);
        start(process);
}

void etcd_process_kill(struct etcd_process *process) {
        kill(process->pid, SIGKILL);
        waitpid(process->pid, NULL, 0);
        process->pid = 0;
}

void etcd_process_continue(struct etcd_process *process) {
        cr_assert(start_once(process), "etcd does not start again: see %s/log", process->directory);
}

void etcd_process_restart(struct etcd_process *process) {
        etcd_process_kill(process);
        etcd_process_continue(process);
}

static void replace_data(struct etcd_process *process, const char *format) {
        char command[256];
        const char *directory = process->directory;

        etcd_process_kill(process);
        snprintf(command, sizeof(command), format, directory, directory, directory);
        cr_assert_eq(system(command), 0);
        etcd_process_continue(process);
}

void etcd_process_save(struct etcd_process *process) {
        replace_data(process, "rm -rf %s/saved && cp -r %s/member %s/saved");
}

void etcd_process_restore(struct etcd_process *process) {
        replace_data(process, "rm -rf %s/member && cp -r %s/saved %s/member");
}

void etcd_process_stop(struct etcd_process *process) {
        char command[128];

        if (process->pid > 0)
                etcd_process_kill(process);
        snprintf(command, sizeof(command), "rm -rf %s", process->directory);
        cr_assert_eq(system(command), 0);
}

void etcd_process_control(const struct etcd_process *process, const char *arguments) {
        char command[512];

        snprintf(command, sizeof(command), "ETCDCTL_API=3 etcdctl --endpoints %s %s >>%s/log 2>&1",
                 process->url, arguments, process->directory);
        cr_assert_eq(system(command), 0, "etcdctl %s: see %s/log", arguments, process->directory);
}
