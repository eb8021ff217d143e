/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * An etcd of one member in a temporary directory. It ends with the test at the
 * latest. Failures fail the test.
 */
struct etcd_process {
        char directory[64];
        char url[64]; /* of its clients: http://127.0.0.1:PORT */
        char peer_url[64];
        const char *option; /* a further argument; NULL: none */
        bool has_tls;       /* certificate.pem and key.pem in the directory: of etcd, and of its clients */
        pid_t pid;
};

/* Start etcd on free ports, and wait until it answers. */
void etcd_process_start(struct etcd_process *process, const char *option);

/* As etcd_process_start(), with TLS. etcd requires a certificate of its clients. */
void etcd_process_start_tls(struct etcd_process *process);

/* Kill etcd, and start it again with its data, at the same ports. */
void etcd_process_restart(struct etcd_process *process);

/* Kill etcd. etcd_process_continue() starts it again. */
void etcd_process_kill(struct etcd_process *process);
void etcd_process_continue(struct etcd_process *process);

/* Copy the data of etcd, and continue with the copy later: as a restored snapshot, with lower revisions. */
void etcd_process_save(struct etcd_process *process);
void etcd_process_restore(struct etcd_process *process);

/* Kill etcd, and remove its data. */
void etcd_process_stop(struct etcd_process *process);

/* Run etcdctl with these arguments: "put key value". Fails the test if etcdctl fails. */
void etcd_process_control(const struct etcd_process *process, const char *arguments);
