/* SPDX-License-Identifier: Apache-2.0 */

/* The view of changes, expiries and refused requests as they happen. */

import { getJson, readEvents } from "./api.js";
import { field } from "./bytes.js";
import { copyButton, el, emptyState, errorBox, labelled, viewHead } from "./dom.js";
import { byteSize, count, time } from "./format.js";
import { patternOf } from "./key_search.js";
import { commandLine } from "./shell.js";
import { shown } from "./text.js";
import { openKey } from "./views.js";

const ROWS_MAX = 500;
const DRAW_MS = 250;
const MINUTE_MS = 60000;
const RETRY_MS = 2000;
const KINDS = { set: "set", delete: "deleted", expire: "expired", refused: "refused" };

const kept = { search: "", client: "" };

function rowElement(event) {
  if (event.kind === "gap") {
    return el("tr", { class: "gap" }, el("td", { colspan: 5 }, event.text));
  }
  const who = [event.client ? shown(event.client, 60) : el("span", { class: "faint" }, "the store")];
  if (event.user && event.user !== event.client) who.push(el("span", { class: "faint" }, " user "), shown(event.user, 40));
  return el("tr", {},
    el("td", { class: "number" }, time(event.time_ms)),
    el("td", {}, el("span", { class: `kind ${event.kind in KINDS ? event.kind : ""}` }, KINDS[event.kind] ?? event.kind)),
    el("td", {}, el("button", { class: "link", onclick: () => openKey(event.key) }, shown(event.key ?? "", 100))),
    el("td", {}, ...who),
    el("td", {}, ...(event.kind === "refused"
      ? [event.verb ?? "", " ", el("span", { class: "bad" }, shown(event.error ?? "", 200))]
      : [event.verb ?? "", event.bytes === undefined ? "" : ` ${byteSize(event.bytes)}`])));
}

class LiveView {
  rows = []; /* the newest first */
  goesOn = true;
  lastId = undefined;
  startedMs = undefined;
  since = 0;
  isPaused = false;
  nWaiting = 0;
  isDirty = true;

  constructor(container) {
    this.body = el("tbody");
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Events" },
      el("table", { class: "live" },
        el("thead", {}, el("tr", {}, ...["Time", "What", "Key", "Client", "Details"].map((name) =>
          el("th", { scope: "col" }, name)))), this.body));
    this.status = el("p", { class: "hint", role: "status" });
    this.content = el("div", {}, this.table);
    this.pause = el("button", { "aria-pressed": "false", onclick: () => this.setPaused(!this.isPaused) }, "Pause");
    this.search = el("input", { type: "search", value: kept.search, placeholder: "All keys", spellcheck: "false" });
    this.client = el("input", { type: "search", value: kept.client, placeholder: "All clients", spellcheck: "false" });
    container.append(
      viewHead("Live", this.status, this.pause,
        el("button", { onclick: () => this.start(0) }, "Last minute"),
        el("button", { onclick: () => this.clear() }, "Clear"),
        copyButton(() => commandLine("monitor", kept.search === "" ? [] : [patternOf(kept.search)]))),
      el("form", {
        class: "toolbar-row wrap",
        onsubmit: (event) => {
          event.preventDefault();
          Object.assign(kept, { search: this.search.value, client: this.client.value });
          this.start();
        },
      }, labelled("Keys", this.search), labelled("Client", this.client), el("button", { class: "primary" }, "Filter")),
      this.content);
    this.timer = setInterval(() => this.draw(), DRAW_MS);
    this.start();
  }

  clear() {
    this.rows = [];
    this.nWaiting = 0;
    this.isDirty = true;
  }

  setPaused(isPaused) {
    this.isPaused = isPaused;
    this.isDirty = true;
    this.pause.textContent = isPaused ? "Continue" : "Pause";
    this.pause.setAttribute("aria-pressed", isPaused);
  }

  /* Follow the events from now on, or after=0: also those of the last minute. */
  async start(after = undefined) {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.clear();
    this.setPaused(false);
    this.lastId = after;
    this.since = 0;
    while (!signal.aborted) {
      try {
        const health = await getJson("/api/health", {}, signal);
        /* The clock of the store may differ from that of this browser. */
        if (after === 0) this.since = health.now_ms - MINUTE_MS;
        this.noteRestart(health.started_ms);
        await readEvents({
          pattern: kept.search === "" ? "" : patternOf(kept.search), client: kept.client, after: this.lastId,
        }, (message) => this.add(message), signal);
      } catch (error) {
        if (error.name !== "AbortError") this.fail(error);
      }
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /* The store numbers its events from 1 after each start. */
  noteRestart(startedMs) {
    if (this.startedMs !== undefined && this.startedMs !== startedMs) {
      this.lastId = 0;
      this.rows.unshift({ kind: "gap", text: "The store was started again here." });
    }
    this.startedMs = startedMs;
  }

  fail(error) {
    /* The banner tells of a lost connection. */
    if (error.status > 0) this.error = errorBox(error);
    this.isDirty = true;
  }

  add(message) {
    const data = JSON.parse(message.data);
    this.error = null;
    if (message.id) this.lastId = message.id;
    if (message.event === "gap") {
      const text = `${count(data.lost)} events are missing here: they came faster than this page could read them.`;
      this.rows.unshift({ kind: "gap", text });
    } else {
      if (data.time_ms < this.since) return;
      this.rows.unshift({ ...data, key: field(data, "key"), client: field(data, "client"), user: field(data, "user") });
    }
    this.isDirty = true;
    if (this.isPaused) this.nWaiting++;
    /* Bounded, also while the view is paused: then the oldest of the new rows are dropped later. */
    if (this.rows.length > 2 * ROWS_MAX) this.rows.length = ROWS_MAX;
  }

  draw() {
    if (!this.isDirty) return;
    this.isDirty = false;
    if (this.isPaused) {
      this.status.textContent = `Paused; ${count(this.nWaiting)} new events`;
      return;
    }
    this.nWaiting = 0;
    const rows = this.rows.slice(0, ROWS_MAX);
    this.status.textContent = rows.length < ROWS_MAX ? `${count(rows.length)} events` : `The last ${ROWS_MAX} events`;
    this.body.replaceChildren(...rows.map(rowElement));
    if (this.error) this.content.replaceChildren(this.error);
    else if (rows.length > 0) this.content.replaceChildren(this.table);
    else {
      this.content.replaceChildren(emptyState("Waiting for events",
        "Each set, deleted and expired key, and each refused request appears here. " +
        "“Last minute” shows what has happened already. Try it in a terminal: ",
        el("code", {}, "statestorectl set greeting hello")));
    }
  }

  close() {
    this.abort.abort();
    clearInterval(this.timer);
  }
}

export function showLive(container) {
  return new LiveView(container);
}
