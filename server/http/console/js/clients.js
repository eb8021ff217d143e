/* SPDX-License-Identifier: Apache-2.0 */

/* The view of clients and watchers. */

import { getJson } from "./api.js";
import { field } from "./bytes.js";
import { copyButton, el, emptyState, errorBox, labelled, openDialog, viewHead } from "./dom.js";
import { byteSize, count, time } from "./format.js";
import { commandLine } from "./shell.js";
import { sortableTable } from "./table.js";
import { shown, shownOnRequest } from "./text.js";

const WATCHERS_MAX = 2000;

function identity(row) {
  return row.verified
    ? el("span", { class: "good", title: "The broker told the store who sent the requests." }, "✓ verified")
    : el("span", { class: "faint", title: "The client says so itself; the broker does not confirm it." }, "claimed");
}

const userOf = (row) => (row.user ? shown(row.user, 60) : el("span", { class: "faint" }, "–"));

/* Read the pages of /api/watchers. Returns { watchers, hasMore }. */
async function readWatchers(parameters) {
  const watchers = [];
  let after;
  do {
    const page = await getJson("/api/watchers", { ...parameters, after });
    watchers.push(...page.watchers.map((watcher) => ({
      key: field(watcher, "key"), client: field(watcher, "client"), user: field(watcher, "user"),
      verified: watcher.verified,
    })));
    after = page.after;
  } while (after !== undefined && watchers.length < WATCHERS_MAX);
  return { watchers, hasMore: after !== undefined };
}

function openWatchers(title, name, parameters, columns, command, nobody) {
  openDialog(title, async (body) => {
    const output = el("div", {}, el("p", { class: "faint" }, "Loading…"));
    body.append(el("p", { class: "key-name" }, shownOnRequest(name, 160)), output,
      el("div", { class: "actions" }, copyButton(command)));
    try {
      const { watchers, hasMore } = await readWatchers(parameters);
      const table = sortableTable(title, columns);
      table.setRows(watchers);
      output.replaceChildren(watchers.length > 0 ? table.element : el("p", {}, nobody));
      if (hasMore) output.append(el("p", { class: "hint" }, `The first ${count(watchers.length)} are shown.`));
    } catch (error) {
      output.replaceChildren(errorBox(error));
    }
  });
}

export function showWatchersOf(key) {
  openWatchers("Who watches this key", key, { key }, [
    { label: "Client", value: (row) => row.client, cell: (row) => shown(row.client, 80) },
    { label: "User", value: (row) => row.user ?? "", cell: userOf },
    { label: "Identity", cell: identity },
  ], commandLine("watchers", [key]), "Nobody watches this key.");
}

function showWatchedBy(client) {
  openWatchers("What this client watches", client, { client }, [
    { label: "Key", value: (row) => row.key, cell: (row) => shown(row.key, 120) },
  ], commandLine("watchers", []), "This client watches no key.");
}

const columns = [
  { label: "Client", value: (row) => row.client,
    cell: (row) => el("button", { class: "link", onclick: () => showWatchedBy(row.client) }, shown(row.client, 60)) },
  { label: "User", value: (row) => row.user ?? "", cell: userOf },
  { label: "Identity", value: (row) => Number(row.verified), cell: identity },
  { label: "Watched keys", class: "right", value: (row) => row.registrations, cell: (row) => count(row.registrations) },
  { label: "Memory", class: "right", value: (row) => row.registration_bytes, cell: (row) => byteSize(row.registration_bytes) },
  { label: "Requests", class: "right", value: (row) => row.requests, cell: (row) => count(row.requests) },
  { label: "Bytes", class: "right", value: (row) => row.request_bytes, cell: (row) => byteSize(row.request_bytes) },
  { label: "Refused", class: "right", value: (row) => row.refused,
    cell: (row) => el("span", { class: row.refused > 0 ? "bad" : "" }, count(row.refused)) },
  { label: "Last request", value: (row) => row.last_request_ms ?? 0,
    cell: (row) => el("span", { class: "number" }, row.last_request_ms ? time(row.last_request_ms) : "–") },
];

export function showClients(container) {
  const table = sortableTable("Clients", columns);
  const status = el("p", { class: "hint", role: "status" });
  const filter = el("input", { type: "search", placeholder: "All clients", oninput: () => draw() });
  const key = el("input", { placeholder: "The whole key", spellcheck: "false", autocomplete: "off" });
  const content = el("div");
  let clients = [];

  function draw() {
    const text = filter.value;
    const matching = clients.filter((row) => row.client.includes(text) || row.user?.includes(text));
    table.setRows(matching);
    if (clients.length === 0) {
      content.replaceChildren(emptyState("No client yet", "A client is listed when it has sent a request or watches a key. " +
        "Try it in a terminal: ", el("code", {}, "statestorectl watch greeting")));
    } else if (matching.length === 0) {
      content.replaceChildren(emptyState("No client matches", "No client id or user contains this text."));
    } else {
      content.replaceChildren(table.element);
    }
  }

  async function refresh() {
    try {
      const page = await getJson("/api/clients");
      clients = page.clients.map((row) => ({ ...row, client: field(row, "client") ?? "", user: field(row, "user") }));
      status.textContent = page.truncated ? `The first ${count(clients.length)} clients` : `${count(clients.length)} clients`;
      draw();
    } catch (error) {
      content.replaceChildren(errorBox(error));
    }
  }

  container.append(
    viewHead("Clients and watchers", status, el("button", { onclick: refresh }, "Refresh"), copyButton(commandLine("clients", []))),
    el("div", { class: "toolbar-row wrap" },
      labelled("Filter by client or user", filter),
      el("form", {
        class: "toolbar-row",
        onsubmit: (event) => {
          event.preventDefault();
          if (key.value !== "") showWatchersOf(key.value);
        },
      }, labelled("Who watches a key?", key), el("button", {}, "Show"))),
    content);
  refresh();
}
