/* SPDX-License-Identifier: Apache-2.0 */

import { getJson } from "./api.js";
import { button, el, emptyState, faint, poll, ROWS_MAX, statusLine, table, viewHead } from "./dom.js";
import { count, countdown, plural, versionElement } from "./format.js";
import { readEntry } from "./key_search.js";
import { openKey } from "./keys.js";
import { shown } from "./text.js";

function watchersElement({ watchers, n_watchers: nWatchers }) {
  if (nWatchers === 0) return faint("nobody");
  const more = nWatchers - watchers.length;
  return el("span", watchers.flatMap((name, i) => [i > 0 ? ", " : "", shown(name)]),
    more > 0 ? ` and ${count(more)} more` : null);
}

/* A lock of the published clients has no fencing token of its own: the version of its SET is the token. */
const COLUMNS = [
  ["Lock", (lock) => button(shown(lock.key), () => openKey(lock.key), "link")],
  ["Holder (its value)", (lock) => shown(lock.value)],
  ["Remaining", (lock) => countdown(lock.deadline)],
  ["Taken or renewed", (lock) => versionElement(lock.version)],
  ["Fencing token", (lock) => versionElement(lock.fence ?? lock.version)],
];

export function showLocks(container, session, signal) {
  const list = table("Locks", session.operator ? [...COLUMNS, ["Who waits (watches)", watchersElement]] : COLUMNS);
  const status = statusLine();
  const content = el("div", faint("Loading…"));

  const draw = (locks, empty) => list(locks.sort((a, b) => (a.version < b.version ? 1 : -1)), empty);
  let nShown = 0;

  container.append(viewHead("Locks", status), content);
  poll(signal, content, async () => {
    const locks = [];
    let token;
    do {
      const page = await getJson("/api/locks", { token }, signal);
      locks.push(...page.keys.map(readEntry));
      token = page.token;
      status.textContent = `${token ? "The first " : ""}${plural(locks.length, "lock")}`;
      if (locks.length > nShown) content.replaceChildren(draw(locks));
    } while (token && locks.length < ROWS_MAX);
    nShown = locks.length;
    return draw(locks, emptyState("No lock is held", "A lock is a key that expires. Try it: ",
      el("code", "statestorectl lock backup -- sleep 60")));
  });
}
