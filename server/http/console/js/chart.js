/* SPDX-License-Identifier: Apache-2.0 */

import { el } from "./dom.js";

const WIDTH = 400;
const HEIGHT = 110;
const GRID = `M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/* Return the path of a line through the values; it has a gap where a value is null. */
export function linePath(values, maximum) {
  let path = "";
  values.forEach((value, i) => {
    if (value === null) return;
    const x = i * WIDTH / (values.length - 1);
    const y = HEIGHT - value / maximum * HEIGHT;
    /* A value alone is a dot: round ends of a line without length. */
    path += `${(values[i - 1] ?? null) === null ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}h0`;
  });
  return path;
}

/* A chart of series [name, values], the oldest value first. format(value) is for people. */
export function chart(title, series, format) {
  const known = (values) => values.filter((value) => value !== null);
  const maximum = Math.max(...series.flatMap(([, values]) => known(values)), 0) || 1;
  const latest = series.map(([name, values]) => {
    const last = known(values).at(-1);
    return `${name} ${last === undefined ? "–" : format(last)}`;
  });

  return el("figure.chart",
    el("figcaption", el("h3", title), el("span.faint", `up to ${format(maximum)}`)),
    svg("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${latest}`,
    }, svg("path", { d: GRID }),
    ...series.map(([, values], i) => svg("path", { class: `line color-${i}`, d: linePath(values, maximum) }))),
    el("div.axis.faint", el("span", "15 min ago"), el("span", "now")),
    el("div.legend", latest.map((text, i) => el("span", el("i", { className: `color-${i}` }, "■ "), text))));
}
