/* SPDX-License-Identifier: Apache-2.0 */

/*
 * --dev: a private mosquitto. It reads its configuration from stdin, which is a memfd, and writes
 * its log to a pipe. So it leaves no file behind, even after SIGKILL.
 */

#include "app/dev_broker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/child.h"
#include "app/dev_broker_conf.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"

struct dev_broker {
        struct dev_broker_callbacks callbacks;
        uv_loop_t *loop;
        const char *listen;
        struct child *child;
        uv_timer_t restart_timer;
        struct endpoint endpoint;
        char host[INET_ADDRSTRLEN];
        char mosquitto[PATH_MAX];
        char plugin[PATH_MAX];
        int reserved_fd;  /* the socket that reserves the port, also while no broker runs; -1: none */
        bool was_running; /* stays true during an outage */
        char last_error[CHILD_LINE_MAX];
};

/*
 * Debian installs mosquitto in /usr/sbin, which is not in the PATH of ordinary users. For each bin
 * directory of PATH, also search the sbin directory beside it.
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

        log_error("cannot start: --dev needs mosquitto, which is not installed; install it: on Debian and "
                  "Ubuntu: apt-get install mosquitto; on Fedora: dnf install mosquitto; on Alpine: apk add "
                  "mosquitto");
        return -ENOENT;
}

/*
 * Find the plugin relative to the directory of this program: in `plugin` of a build directory, or
 * in PLUGIN_FROM_BINARY of an installation.
 */
static int find_plugin(char ret_path[PATH_MAX]) {
        static const char *const places[] = { "plugin", PLUGIN_FROM_BINARY };
        char folder[PATH_MAX];
        ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

        if (length < 0) {
                int r = -errno;

                log_error("cannot start: cannot read /proc/self/exe: %s; mount /proc", strerror(-r));
                return r;
        }
        folder[length] = '\0';
        *strrchr(folder, '/') = '\0';

        for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
                if (snprintf(ret_path, PATH_MAX, "%s/%s/mosquitto_statestore.so", folder, places[i]) <
                            PATH_MAX &&
                    access(ret_path, R_OK) == 0)
                        return 0;

        log_error("cannot start: mosquitto_statestore.so, the plugin of the broker, is neither in \"%s/%s\" "
                  "nor in \"%s/%s\"; install it with statestored, or run statestored in its build folder",
                  folder, places[0], folder, places[1]);
        return -ENOENT;
}

/* Returns an anonymous file with the configuration, positioned at its beginning. */
static int write_configuration(const struct dev_broker *dev) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct dev_broker_conf conf = {
                .address = dev->listen,
                .port = dev->endpoint.port,
                .plugin = dev->plugin,
                .is_root = geteuid() == 0,
        };
        int fd;

        dev_broker_conf_append(&text, &conf);
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

static int bind_port(int fd, uint16_t *ret_port) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons(*ret_port),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        int one = 1;

        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
            bind(fd, (struct sockaddr *)&address, length) < 0 ||
            getsockname(fd, (struct sockaddr *)&address, &length) < 0)
                return -errno;

        *ret_port = ntohs(address.sin_port);
        return 0;
}

/*
 * Reserve the TCP port *ret_port, or a free one if it is 0, on 127.0.0.1 for a process that will
 * listen there with SO_REUSEADDR. Until the socket is closed, the kernel does not assign the port to
 * processes that request any port. Returns the socket or -errno.
 */
static int reserve_port(uint16_t *ret_port) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r;

        if (fd < 0)
                return -errno;

        r = bind_port(fd, ret_port);
        if (r == 0)
                return fd;
        close(fd);
        return r;
}

/*
 * mosquitto logs "mosquitto version X running" when it accepts connections. Before that, 2.1 logs
 * "Info: running mosquitto as user: X".
 */
static bool is_running_line(const char *line) {
        return strncmp(line, "mosquitto version ", strlen("mosquitto version ")) == 0 &&
               strstr(line, " running");
}

static void dev_broker_on_line(void *userdata, const char *line) {
        struct dev_broker *dev = userdata;

        log_debug("mosquitto: %s", LOG_STRING(line));
        if (strncmp(line, "Error", strlen("Error")) == 0 || *dev->last_error == '\0')
                snprintf(dev->last_error, sizeof(dev->last_error), "%s", line);
        if (dev->was_running || !is_running_line(line))
                return;

        dev->was_running = true;
        dev->callbacks.running(dev->callbacks.userdata);
}

static void dev_broker_on_ended(void *userdata) {
        struct dev_broker *dev = userdata;
        char cause[LOG_TEXT_MAX + 100];

        dev->child = child_stop(dev->child);
        if (strstr(dev->last_error, "Address already in use"))
                snprintf(cause, sizeof(cause),
                         "cannot start: port %u is in use; choose another port with --port, or a free "
                         "port with --port 0",
                         dev->endpoint.port);
        else
                snprintf(cause, sizeof(cause), "mosquitto ended: %s", LOG_STRING(dev->last_error));
        dev->callbacks.ended(dev->callbacks.userdata, cause);
}

/* Returns 0 or -errno. */
static int start_child(struct dev_broker *dev) {
        const struct child_callbacks callbacks = { .line = dev_broker_on_line,
                                                   .ended = dev_broker_on_ended,
                                                   .userdata = dev };
        char *arguments[] = { dev->mosquitto, "-c", "/proc/self/fd/0", NULL };
        int conf_fd;
        int r;

        conf_fd = write_configuration(dev);
        r = conf_fd < 0 ? conf_fd : child_start(&dev->child, dev->loop, arguments, conf_fd, &callbacks);
        if (conf_fd >= 0)
                close(conf_fd);
        return r;
}

static void restart_child(uv_timer_t *timer) {
        struct dev_broker *dev = timer->data;
        char cause[100];
        int r = start_child(dev);

        if (r == 0)
                return;
        snprintf(cause, sizeof(cause), "cannot start mosquitto: %s", strerror(-r));
        dev->callbacks.ended(dev->callbacks.userdata, cause);
}

void dev_broker_interrupt(struct dev_broker *dev, int64_t duration_ms) {
        dev->child = child_stop(dev->child);
        uv_timer_start(&dev->restart_timer, restart_child, (uint64_t)duration_ms, 0);
}

CLEANUP_FUNCTION(cleanup_dev_broker, struct dev_broker *, dev_broker_free)

int dev_broker_start(struct dev_broker **ret_dev, uv_loop_t *loop, const char *listen, uint16_t port,
                     const struct dev_broker_callbacks *callbacks) {
        CLEANUP(cleanup_dev_broker) struct dev_broker *dev = calloc(1, sizeof(*dev));
        int r;

        if (!dev)
                return -ENOMEM;

        dev->callbacks = *callbacks;
        dev->loop = loop;
        dev->listen = listen;
        dev->endpoint.port = port;
        dev->reserved_fd = reserve_port(&dev->endpoint.port);
        if (dev->reserved_fd < 0 && dev->endpoint.port == 0) {
                log_error("cannot start: no TCP port is free: %s", strerror(-dev->reserved_fd));
                return dev->reserved_fd;
        }
        snprintf(dev->host, sizeof(dev->host), "%s", strcmp(listen, "0.0.0.0") == 0 ? "127.0.0.1" : listen);
        dev->endpoint.host = dev->host;

        r = find_mosquitto(dev->mosquitto);
        if (r == 0)
                r = find_plugin(dev->plugin);
        if (r < 0)
                return r;

        if (strncmp(listen, "127.", strlen("127.")) != 0)
                log_warning(
                        "--dev-listen %s: all clients that reach this machine may read and write every key",
                        listen);
        r = start_child(dev);
        if (r < 0) {
                log_error("cannot start mosquitto: %s", strerror(-r));
                return r;
        }

        uv_timer_init(loop, &dev->restart_timer);
        dev->restart_timer.data = dev;
        *ret_dev = take_ptr(&dev);
        return 0;
}

void dev_broker_stop(struct dev_broker *dev) {
        if (dev)
                dev->child = child_stop(dev->child);
}

struct dev_broker *dev_broker_free(struct dev_broker *dev) {
        if (!dev)
                return NULL;

        if (dev->reserved_fd >= 0)
                close(dev->reserved_fd);
        free(dev);
        return NULL;
}

const struct endpoint *dev_broker_endpoint(const struct dev_broker *dev) {
        return &dev->endpoint;
}
