/* SPDX-License-Identifier: Apache-2.0 */

import { getJson } from "./api.js";
import {
  button, el, emptyState, faint, form, labelled, openDialog, poll, showPromised, statusLine, table, textInput,
  viewHead,
} from "./dom.js";
import { byteSize, count, plural, time } from "./format.js";
import { keyName, shown } from "./text.js";

const USER = ["User", (row) => (row.user ? shown(row.user) : faint("–"))];
const IDENTITY = ["Identity", (row) => (row.verified
  ? el("span.good", "✓ verified") : el("span.faint", { title: "The broker does not confirm it." }, "claimed"))];

function openWatchers(title, name, parameters, columns) {
  const { body } = openDialog(title);
  const output = el("div", faint("Loading…"));
  body.append(keyName(name), output);
  showPromised(output, getJson("/api/watchers", parameters).then(({ watchers, after }) =>
    el("div", table(title, columns)(watchers, "None."),
      after ? el("p.hint", `The first ${count(watchers.length)} are shown.`) : "")));
}

const KEY = ["Key", (row) => shown(row.key, 120)];

export function showWatchersOf(key) {
  openWatchers("Watchers", key ?? "All keys", { key }, [KEY, ["Client", (row) => shown(row.client)], USER, IDENTITY]);
}

function showWatchedBy(client) {
  openWatchers("What this client watches", client, { client }, [KEY]);
}

const number = (label, name, format) => [label, (row) => format(row[name])];

const COLUMNS = [
  ["Client", (row) => button(shown(row.client), () => showWatchedBy(row.client), "link")],
  USER, IDENTITY,
  number("Watched keys", "registrations", count),
  number("Watch memory", "registration_bytes", byteSize),
  number("Requests", "requests", count),
  number("Request bytes ▾", "request_bytes", byteSize),
  ["Refused", (row) => el(row.refused > 0 ? "span.bad" : "span", count(row.refused))],
  number("Last request", "last_request_ms", (ms) => (ms ? time(ms) : "–")),
];

export function showClients(container, session, signal) {
  const list = table("Clients", COLUMNS);
  const status = statusLine();
  const key = textInput({ placeholder: "all keys" });
  const content = el("div");

  container.append(
    viewHead("Clients and watchers", status),
    form(() => showWatchersOf(key.value || undefined), labelled("Who watches a key?", key), button("Show")),
    content);
  poll(signal, content, async () => {
    const page = await getJson("/api/clients", {}, signal);
    const clients = page.clients.sort((a, b) => b.request_bytes - a.request_bytes);
    status.textContent = `${page.truncated ? "The first " : ""}${plural(clients.length, "client")}`;
    return list(clients, emptyState("No client yet", "A client is listed when it has sent a request."));
  });
}
