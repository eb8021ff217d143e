/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"

#define SCHEME       "mqtt://"
#define PORT_DEFAULT 1883

int port_parse(const char *text, uint16_t *ret_port) {
        uint64_t port;

        if (parse_uint64(slice_from_string(text), &port) < 0 || port < 1 || port > UINT16_MAX)
                return -EINVAL;

        *ret_port = (uint16_t)port;
        return 0;
}

static int hex_digit(char digit) {
        static const char digits[] = "0123456789abcdef";
        const char *found = digit ? strchr(digits, digit | 0x20) : NULL;

        return found ? (int)(found - digits) : -EINVAL;
}

/* In place: the text only gets shorter. */
static int decode_percent(char *text) {
        char *to = text;

        for (; *text; text++) {
                int high, low;

                if (*text != '%') {
                        *to++ = *text;
                        continue;
                }
                high = hex_digit(text[1]);
                low = high < 0 ? high : hex_digit(text[2]);
                if (low < 0 || high + low == 0)
                        return -EINVAL;
                *to++ = (char)(high << 4 | low);
                text += 2;
        }
        *to = '\0';
        return 0;
}

/* Ends the text at the separator and returns what follows it, or NULL where there is none. */
static char *cut_at(char *separator) {
        if (!separator)
                return NULL;
        *separator = '\0';
        return separator + 1;
}

static int read_user(struct url *url, char *user) {
        char *password = cut_at(strchr(user, ':'));

        if (decode_percent(user) < 0 || (password && decode_percent(password) < 0) || !*user)
                return -EINVAL;

        url->user = user;
        url->password = password;
        return 0;
}

static int read_host(struct url *url, char *host) {
        char *port;

        if (*host == '[') {
                port = cut_at(strchr(host, ']'));
                host++;
                if (!port || (*port && *port != ':'))
                        return -EINVAL;
                port = *port ? port + 1 : NULL;
        } else {
                port = cut_at(strchr(host, ':'));
        }

        url->host = host;
        url->port = PORT_DEFAULT;
        if (!*host)
                return -EINVAL;
        return port ? port_parse(port, &url->port) : 0;
}

int url_init(struct url *url, const char *text) {
        CLEANUP(url_deinit) struct url read = { 0 };
        char *user = NULL, *host, *path;
        int r = 0;

        if (strncmp(text, SCHEME, strlen(SCHEME)) != 0)
                return -EINVAL;

        read.text = strdup(text + strlen(SCHEME));
        if (!read.text)
                return -ENOMEM;

        host = cut_at(strrchr(read.text, '@'));
        if (host)
                user = read.text;
        else
                host = read.text;
        path = cut_at(strchr(host, '/'));
        if (path && *path)
                return -EINVAL;

        if (user)
                r = read_user(&read, user);
        if (r == 0)
                r = read_host(&read, host);
        if (r < 0)
                return r;

        *url = read;
        read.text = NULL;
        return 0;
}

void url_deinit(struct url *url) {
        free(url->text);
        *url = (struct url){ 0 };
}
