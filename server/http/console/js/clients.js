/* SPDX-License-Identifier: Apache-2.0 */

/* The view of clients and watchers. */

import { getJson } from "./api.js";
import { field } from "./bytes.js";
import {
  button, el, emptyState, errorBox, faint, form, labelled, openDialog, poll, statusLine, table, textInput,
  viewHead,
} from "./dom.js";
import { byteSize, count, plural, time } from "./format.js";
import { shown, shownOnRequest } from "./text.js";

const REFRESH_MS = 5000;

const names = (row) => ({ ...row, key: field(row, "key"), client: field(row, "client"), user: field(row, "user") });

const USER = ["User", (row) => (row.user ? shown(row.user) : faint("–"))];
const IDENTITY = ["Identity", (row) => (row.verified
  ? el("span.good", "✓ verified") : el("span.faint", { title: "The broker does not confirm it." }, "claimed"))];

async function openWatchers(title, name, parameters, columns) {
  const { body } = openDialog(title);
  const output = el("div", faint("Loading…"));
  body.append(el("p.key-name", shownOnRequest(name, 160)), output);
  try {
    const { watchers, after } = await getJson("/api/watchers", parameters);
    output.replaceChildren(watchers.length > 0 ? table(title, columns, watchers.map(names)).element : "None.",
      after === undefined ? "" : el("p.hint", `The first ${count(watchers.length)} are shown.`));
  } catch (error) {
    output.replaceChildren(errorBox(error));
  }
}

export function showWatchersOf(key) {
  openWatchers("Who watches this key", key, { key },
    [["Client", (row) => shown(row.client)], USER, IDENTITY]);
}

function showWatchedBy(client) {
  openWatchers("What this client watches", client, { client },
    [["Key", (row) => shown(row.key, 120)]]);
}

const number = (label, name, format) => [label, (row) => el("span.number", format(row[name]))];

const COLUMNS = [
  ["Client", (row) => button(shown(row.client), () => showWatchedBy(row.client), "link")],
  USER, IDENTITY,
  number("Watched keys", "registrations", count),
  number("Memory", "registration_bytes", byteSize),
  number("Requests", "requests", count),
  number("Bytes", "request_bytes", byteSize),
  ["Refused", (row) => el(row.refused > 0 ? "span.bad" : "span", count(row.refused))],
  number("Last request", "last_request_ms", (ms) => (ms ? time(ms) : "–")),
];

export function showClients(container, session, signal) {
  const list = table("Clients", COLUMNS);
  const status = statusLine();
  const key = textInput({ placeholder: "The whole key", required: true });
  const content = el("div");

  container.append(
    viewHead("Clients and watchers", status),
    form(() => showWatchersOf(key.value), labelled("Who watches a key?", key), button("Show")),
    content);
  poll(signal, REFRESH_MS, content, async () => {
    const page = await getJson("/api/clients", {}, signal);
    const clients = page.clients.map(names).sort((a, b) => b.request_bytes - a.request_bytes);
    status.textContent = `${page.truncated ? "The first " : ""}${plural(clients.length, "client")}`;
    list.setRows(clients);
    content.replaceChildren(clients.length > 0 ? list.element : emptyState("No client yet",
      "A client is listed when it has sent a request or watches a key."));
  });
}
