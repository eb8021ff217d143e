/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

struct process {
        pid_t pid, parent;
        bool is_zombie;
        bool is_descendant;
};

struct processes {
        struct process *list;
        size_t n, capacity;
};

static void processes_deinit(struct processes *processes) {
        free(processes->list);
}

CLEANUP_FUNCTION(cleanup_directory, DIR *, closedir)

/* Read /proc/NAME/stat: the pid, the name in parentheses, the state, the parent, and more. */
static bool read_process(const char *name, struct process *ret_process) {
        char path[sizeof("/proc//stat") + 256], text[512], state;
        const char *after_name;
        ssize_t n = -1;
        int fd, parent;

        snprintf(path, sizeof(path), "/proc/%.255s/stat", name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
                n = read(fd, text, sizeof(text) - 1);
                close(fd);
        }
        if (n <= 0)
                return false; /* the process has ended */
        text[n] = '\0';
        after_name = strrchr(text, ')');
        if (!after_name || sscanf(after_name + 1, " %c %d", &state, &parent) != 2)
                return false;

        *ret_process = (struct process){ .pid = (pid_t)strtol(name, NULL, 10),
                                         .parent = parent,
                                         .is_zombie = state == 'Z' || state == 'X' };
        return true;
}

static int compare_pids(const void *a, const void *b) {
        pid_t pid_a = ((const struct process *)a)->pid, pid_b = ((const struct process *)b)->pid;

        return (pid_a > pid_b) - (pid_a < pid_b);
}

static void read_processes(struct processes *processes) {
        CLEANUP(cleanup_directory) DIR *directory = opendir("/proc");
        const struct dirent *entry;

        while (directory && (entry = readdir(directory))) {
                if (!isdigit((unsigned char)*entry->d_name))
                        continue;
                if (array_reserve((void **)&processes->list, &processes->capacity, processes->n + 1,
                                  sizeof(*processes->list)) < 0)
                        return;
                processes->n += read_process(entry->d_name, &processes->list[processes->n]);
        }
        if (processes->n > 0)
                qsort(processes->list, processes->n, sizeof(*processes->list), compare_pids);
}

/* Returns whether a process was marked: its children may need another pass. */
static bool mark_descendants(struct processes *processes) {
        bool has_marked = false;

        for (size_t i = 0; i < processes->n; i++) {
                struct process *process = &processes->list[i];
                struct process key = { .pid = process->parent };
                const struct process *parent =
                        bsearch(&key, processes->list, processes->n, sizeof(key), compare_pids);

                if (!process->is_descendant &&
                    (process->parent == getpid() || (parent && parent->is_descendant)))
                        process->is_descendant = has_marked = true;
        }
        return has_marked;
}

size_t process_tree_signal(int number) {
        CLEANUP(processes_deinit) struct processes processes = { 0 };
        size_t n = 0;

        read_processes(&processes);
        while (mark_descendants(&processes))
                ;
        for (size_t i = 0; i < processes.n; i++)
                if (processes.list[i].is_descendant && !processes.list[i].is_zombie) {
                        kill(processes.list[i].pid, number);
                        n++;
                }
        return n;
}
