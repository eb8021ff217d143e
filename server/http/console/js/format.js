/* SPDX-License-Identifier: Apache-2.0 */

import { el, faint } from "./dom.js";

export const UNITS_MS = { d: 86400000, h: 3600000, min: 60000, s: 1000 };

export const count = (n) => n.toLocaleString("en");

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

export function byteSize(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, n)) / 10));
  const value = n / 1024 ** unit;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/* In the two largest units: 45 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function duration(ms) {
  const units = Object.entries(UNITS_MS);
  let rest = Math.ceil(ms / 1000) * 1000;
  const first = units.findIndex(([, size]) => rest >= size);
  const parts = units.slice(first, first + 2).map(([unit, size]) => {
    const n = Math.floor(rest / size);
    rest %= size;
    return n > 0 ? `${n} ${unit}` : "";
  });
  return parts.join(" ").trim() || "0 s";
}

export function microseconds(us) {
  if (us < 1000) return `${Math.round(us)} µs`;
  return us < 1e6 ? `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms` : `${(us / 1e6).toFixed(1)} s`;
}

/* Local time: with milliseconds if it is today, else with the date. */
export function time(ms) {
  const text = new Date(ms).toLocaleString("sv"); /* 2026-01-31 23:59:59 */
  const isToday = text.slice(0, 10) === new Date().toLocaleDateString("sv");
  return isToday ? `${text.slice(11)}.${String(ms % 1000).padStart(3, "0")}` : text;
}

/* Return { ms, counter } of an HLC such as 001795219608228:00000:StateStore, or null. */
export function parseVersion(version) {
  const match = /^(\d{15}):(\d{5}):/.exec(version ?? "");
  return match && { ms: Number(match[1]), counter: Number(match[2]) };
}

/* A version as a time and its counter. The title has the version itself. */
export function versionElement(version) {
  const hlc = parseVersion(version);
  return hlc ? el("span", { title: version }, time(hlc.ms), faint(` #${hlc.counter}`)) : faint("–");
}

const remaining = (deadline) => (deadline <= Date.now() ? "expired" : duration(deadline - Date.now()));

/* The remaining time, counting down. undefined: the key does not expire. */
export function countdown(deadline) {
  return deadline ? el("span.countdown", { "data-deadline": deadline }, remaining(deadline)) : faint("–");
}

export function updateCountdowns() {
  document.querySelectorAll(".countdown").forEach((one) => { one.textContent = remaining(one.dataset.deadline); });
}
