/* SPDX-License-Identifier: Apache-2.0 */

/*
 * --dev: a private mosquitto. It uses no files except the plugin: its configuration is memory, passed as
 * stdin, and its log is a pipe. Nothing is left to clean up, even after SIGKILL.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app/child.h"
#include "app/dev_broker_conf.h"
#include "app/free_port.h"
#include "app/internal.h"
#include "base/cleanup.h"
#include "base/log.h"

/* Another process may take the port between its reservation and the start of the broker. */
#define PORTS_TRIED 20

struct dev {
        struct child *child;
        struct endpoint endpoint;
        char host[INET_ADDRSTRLEN];
        char mosquitto[PATH_MAX];
        char plugin[PATH_MAX];
        int reserved_fd; /* -1: none */
        int n_tried;
        bool is_serving, is_port_taken;
        char last_error[CHILD_LINE_MAX];
};

/*
 * Debian installs mosquitto in an sbin, which is not in the PATH of ordinary users. For each bin in PATH
 * look in the sbin beside it too.
 */
static bool is_mosquitto_in(const char *folder, char ret_path[PATH_MAX]) {
        size_t length = strlen(folder);

        if (snprintf(ret_path, PATH_MAX, "%s/mosquitto", folder) < PATH_MAX && access(ret_path, X_OK) == 0)
                return true;
        return length > strlen("/bin") && strcmp(folder + length - strlen("/bin"), "/bin") == 0 &&
               snprintf(ret_path, PATH_MAX, "%.*ssbin/mosquitto", (int)(length - strlen("bin")), folder) <
                       PATH_MAX &&
               access(ret_path, X_OK) == 0;
}

static int find_mosquitto(char ret_path[PATH_MAX]) {
        const char *path = getenv("PATH");
        char folders[8192];
        char *rest = folders;

        snprintf(folders, sizeof(folders), "%s", path ? path : "/usr/local/bin:/usr/bin:/bin");
        for (char *folder = strsep(&rest, ":"); folder; folder = strsep(&rest, ":"))
                if (*folder == '/' && is_mosquitto_in(folder, ret_path))
                        return 0;

        log_error(
                "cannot start: --dev needs mosquitto, which is not installed; install it: on Debian and "
                "Ubuntu: "
                "apt-get install mosquitto; on Fedora: dnf install mosquitto; on Alpine: apk add mosquitto");
        return -ENOENT;
}

/* The plugin is beside the program in the build directory, or in the directory where it was installed. */
static int find_plugin(char ret_path[PATH_MAX]) {
        static const char *const places[] = { "plugin", PLUGIN_FROM_BINARY };
        char folder[PATH_MAX];
        ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

        if (length < 0)
                return -errno;
        folder[length] = '\0';
        *strrchr(folder, '/') = '\0';

        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
                if (snprintf(ret_path, PATH_MAX, "%s/%s/mosquitto_statestore.so", folder, places[i]) <
                            PATH_MAX &&
                    access(ret_path, R_OK) == 0)
                        return 0;

        log_error(
                "cannot start: mosquitto_statestore.so, the broker's plugin, is neither in \"%s/%s\" nor in "
                "\"%s/%s\"",
                folder, places[0], folder, places[1]);
        return -ENOENT;
}

/* Returns an anonymous file with the configuration, positioned at its beginning. */
static int write_configuration(const struct server *server, const struct dev *dev) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct broker_conf conf = {
                .address = server->config.dev_listen,
                .port = dev->endpoint.port,
                .plugin = dev->plugin,
                .client_id = server->config.client_id,
                .is_root = geteuid() == 0,
        };
        int fd;

        broker_conf_append(&text, &conf);
        if (buf_failed(&text))
                return -ENOMEM;

        fd = memfd_create("mosquitto.conf", MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (write(fd, text.data, text.length) != (ssize_t)text.length) {
                close(fd);
                return -EIO;
        }
        return fd;
}

static void release_port(struct dev *dev) {
        if (dev->reserved_fd >= 0)
                close(dev->reserved_fd);
        dev->reserved_fd = -1;
}

static void on_line(void *userdata, const char *line) {
        struct server *server = userdata;
        struct dev *dev = server->dev;

        log_debug("mosquitto: %s", LOG_TEXT(slice_from_string(line)));
        if (strstr(line, "Address already in use"))
                dev->is_port_taken = true;
        if (strncmp(line, "Error", strlen("Error")) == 0 || *dev->last_error == '\0')
                snprintf(dev->last_error, sizeof(dev->last_error), "%s", line);
        if (dev->is_serving || !strstr(line, " running"))
                return;

        dev->is_serving = true;
        release_port(dev);
        if (!server->is_stopping && server_open_link(server) < 0)
                server_stop(server, EXIT_FAILURE);
}

static int start_child(struct server *server);

static void on_ended(void *userdata) {
        struct server *server = userdata;
        struct dev *dev = server->dev;

        dev->child = child_stop(dev->child);
        release_port(dev);
        if (server->is_stopping)
                return;
        if (dev->is_port_taken && server->config.port == 0 && ++dev->n_tried < PORTS_TRIED &&
            start_child(server) == 0)
                return;

        if (dev->is_port_taken)
                log_error("cannot start: port %u is in use; choose another one with --port, or --port 0 for "
                          "one that "
                          "is free",
                          dev->endpoint.port);
        else
                log_error("mosquitto ended: %s", LOG_TEXT(slice_from_string(dev->last_error)));
        server_stop(server, EXIT_FAILURE);
}

static int start_child(struct server *server) {
        static const struct child_callbacks callbacks = { .line = on_line, .ended = on_ended };
        struct child_callbacks ours = callbacks;
        struct dev *dev = server->dev;
        char *arguments[] = { dev->mosquitto, "-c", "/proc/self/fd/0", NULL };
        int conf_fd;
        int r;

        dev->is_port_taken = false;
        dev->endpoint.port = server->config.port;
        if (server->config.port == 0) {
                dev->reserved_fd = port_reserve(&dev->endpoint.port);
                if (dev->reserved_fd < 0)
                        return dev->reserved_fd;
        }
        conf_fd = write_configuration(server, dev);
        if (conf_fd < 0)
                return conf_fd;

        ours.userdata = server;
        r = child_start(&dev->child, &server->loop, arguments, conf_fd, &ours);
        close(conf_fd);
        return r;
}

int server_start_broker(struct server *server) {
        struct dev *dev = calloc(1, sizeof(*dev));
        int r;

        if (!dev)
                return -ENOMEM;

        server->dev = dev;
        dev->reserved_fd = -1;
        snprintf(dev->host, sizeof(dev->host), "%s",
                 strcmp(server->config.dev_listen, "0.0.0.0") == 0 ? "127.0.0.1"
                                                                   : server->config.dev_listen);
        dev->endpoint.host = dev->host;

        r = find_mosquitto(dev->mosquitto);
        if (r == 0)
                r = find_plugin(dev->plugin);
        if (r < 0)
                return r;

        if (strncmp(server->config.dev_listen, "127.", strlen("127.")) != 0)
                log_warning(
                        "--dev-listen %s: all clients that reach this machine may read and write every key",
                        server->config.dev_listen);
        r = start_child(server);
        if (r < 0)
                log_error("cannot start mosquitto: %s", strerror(-r));
        return r;
}

void server_stop_broker(struct server *server) {
        if (server->dev)
                server->dev->child = child_stop(server->dev->child);
}

void server_free_broker(struct server *server) {
        if (!server->dev)
                return;

        release_port(server->dev);
        free(server->dev);
        server->dev = NULL;
}

const struct endpoint *server_broker_endpoint(const struct server *server) {
        return &server->dev->endpoint;
}
