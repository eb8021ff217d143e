/* SPDX-License-Identifier: Apache-2.0 */

import { getJson } from "./api.js";
import { chart } from "./chart.js";
import { el, faint, poll, viewHead, warning } from "./dom.js";
import { byteSize, count, microseconds } from "./format.js";

const BROKERS = { plugin: "with the plugin", plain: "without the plugin", unknown: "not recognized yet" };

const tile = (name, value, detail = "") => el("div.tile", el("dt", name), el("dd", value), el("dd.faint", detail));

const used = (name, { n, max }, format) => tile(name, format(n), max ? `of ${format(max)}` : "");

function tiles({ broker, dropped, commits, cluster, ...health }) {
  return el("dl.tiles",
    tile("Broker", broker.connected ? "connected" : "not connected", BROKERS[broker.kind]),
    used("Keys", health.keys, count), used("Memory", health.bytes, byteSize),
    used("Watched keys", health.registrations, count), used("Waiting requests", health.waiting_bytes, byteSize),
    tile("Dropped requests", count(dropped)),
    commits ? tile("Commits", count(commits.n), `${count(commits.failed)} failed`)
      : tile("Commits", "none", "the store is in memory"),
    cluster ? tile("Cluster", cluster.leads ? "this member leads" : "standby", `term ${cluster.term}`) : null);
}

/* Requests a second, of each verb that was used. */
function requestSeries({ requests, interval_ms: intervalMs }) {
  const rate = (value) => (value === null ? null : value * 1000 / intervalMs);
  const series = Object.entries(requests).map(([name, values]) => [name, values.map(rate)]);
  const used = series.filter(([, values]) => values.some((value) => value > 0));
  return used.length > 0 ? used : series.slice(0, 1);
}

function charts(samples, hasCommits) {
  const whole = (value) => count(Math.round(value));
  const rate = (value) => `${value < 10 ? Math.round(value * 10) / 10 : whole(value)}/s`;
  return el("div.charts",
    chart("Requests", requestSeries(samples), rate),
    chart("Waiting time", [["median", samples.queue_p50_us], ["99 %", samples.queue_p99_us]], microseconds),
    chart("Execution time", [["99 %", samples.engine_p99_us]], microseconds),
    hasCommits ? chart("Commit time",
      [["median", samples.commit_p50_us], ["99 %", samples.commit_p99_us]], microseconds) : null,
    chart("Keys", [["keys", samples.keys]], whole),
    chart("Memory", [["bytes", samples.bytes]], byteSize),
    chart("Dropped requests", [["dropped", samples.dropped]], whole));
}

function state({ ready, reason, broker }) {
  return el(ready ? "p.state.good" : "p.state.bad", { role: "status" },
    el("strong", ready ? "● Ready " : "▲ Not ready "), ready ? "The store serves requests." : reason,
    broker.connected ? "" : ". Does the broker run? Try statestorectl doctor.");
}

const explanation = () => el("p.notice", el("strong", "Only Health is shown. "),
  el("code", "statestorectl console-token NAME >>FILE"), " adds a user, and ",
  el("code", "--console-users FILE"), " names the file to the store.");

export function showHealth(container, session, signal) {
  const content = el("div", faint("Loading…"));

  container.append(viewHead("Health"), session.login === "unavailable" ? explanation() : "", content);
  poll(signal, content, async () => {
    const health = await getJson("/api/health", {}, signal);
    return el("div.fields", state(health),
      health.warnings.map(({ text, remedy }) => warning(el("strong", `▲ ${text}`), remedy)),
      tiles(health), charts(health.samples, health.commits !== null));
  });
}
