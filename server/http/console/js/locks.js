/* SPDX-License-Identifier: Apache-2.0 */

/* The view of locks: who holds them, for how long, and who waits. */

import { getJson } from "./api.js";
import { field } from "./bytes.js";
import { copyButton, el, emptyState, errorBox, viewHead } from "./dom.js";
import { count, countdown, parseVersion, versionElement } from "./format.js";
import { readEntry } from "./key_search.js";
import { commandLine } from "./shell.js";
import { sortableTable } from "./table.js";
import { shown } from "./text.js";
import { openKey } from "./views.js";

const LOCKS_MAX = 2000;
const REFRESH_MS = 3000;

function watchersElement(lock) {
  if (!lock.watchers) return el("span", { class: "faint" }, "–");
  const names = lock.watchers.flatMap((name) => [shown(name, 60), ", "]).slice(0, -1);
  if (lock.nWatchers > lock.watchers.length) names.push(` and ${count(lock.nWatchers - lock.watchers.length)} more`);
  return names.length > 0 ? el("span", {}, ...names) : el("span", { class: "faint" }, "nobody");
}

function columns(session) {
  const all = [
    { label: "Lock", value: (lock) => lock.key,
      cell: (lock) => el("button", { class: "link", onclick: () => openKey(lock.key) }, shown(lock.key, 80)) },
    { label: "Holder (its value)", value: (lock) => lock.value ?? "", cell: (lock) => shown(lock.value ?? "", 80) },
    { label: "Remaining", value: (lock) => lock.deadline, cell: (lock) => countdown(lock.deadline) },
    { label: "Taken or renewed", value: (lock) => lock.version,
      cell: (lock) => el("span", {}, versionElement(lock.version)) },
    { label: "Fencing token", value: (lock) => lock.fence ?? "", cell: (lock) => versionElement(lock.fence) },
  ];
  if (session.operator) all.push({ label: "Who waits (watches)", cell: watchersElement });
  return all;
}

async function readLocks(signal) {
  const locks = [];
  let token;
  do {
    const page = await getJson("/api/locks", { token }, signal);
    for (const object of page.keys) {
      locks.push({
        ...readEntry(object), value: field(object, "value"),
        watchers: object.watchers, nWatchers: object.n_watchers ?? 0,
      });
    }
    token = page.token;
  } while (token !== undefined && locks.length < LOCKS_MAX);
  return { locks, hasMore: token !== undefined };
}

export function showLocks(container, session) {
  const abort = new AbortController();
  const table = sortableTable("Locks", columns(session));
  const status = el("p", { class: "hint", role: "status" }, "Loading…");
  const content = el("div");
  let timer;

  container.append(
    viewHead("Locks", status, copyButton(commandLine("scan", [], ["--long"]))),
    content);

  function show({ locks, hasMore }) {
    status.textContent = hasMore ? `The first ${count(locks.length)} locks` : `${count(locks.length)} locks`;
    if (locks.length === 0) {
      content.replaceChildren(emptyState("No lock is held",
        "A lock is a key with a fencing token that expires. Try it in a terminal: ",
        el("code", {}, "statestorectl lock backup -- sleep 60")));
      return;
    }
    table.setRows(locks.sort((a, b) => parseVersion(b.version)?.ms - parseVersion(a.version)?.ms));
    if (content.firstChild !== table.element) content.replaceChildren(table.element);
  }

  async function refresh() {
    const start = Date.now();
    try {
      /* Drawing again would move the focus away from a button in the table. */
      const result = await readLocks(abort.signal);
      if (!table.element.contains(document.activeElement) || document.activeElement === table.element) show(result);
    } catch (error) {
      if (error.name !== "AbortError") content.replaceChildren(errorBox(error));
    }
    if (!abort.signal.aborted) timer = setTimeout(refresh, Math.max(REFRESH_MS, 10 * (Date.now() - start)));
  }

  refresh();
  return {
    goesOn: true,
    close() {
      abort.abort();
      clearTimeout(timer);
    },
  };
}
