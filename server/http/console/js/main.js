/* SPDX-License-Identifier: Apache-2.0 */

import { connection, getJson, logIn, logOut } from "./api.js";
import { showClients } from "./clients.js";
import { showControl } from "./control.js";
import { button, el, errorBox, faint, form, labelled, textInput } from "./dom.js";
import { updateCountdowns } from "./format.js";
import { showHealth } from "./health.js";
import { showKeys } from "./keys.js";
import { showLive } from "./live.js";
import { showLocks } from "./locks.js";
import { shown } from "./text.js";

const isUser = (session) => session.user !== null;
const isOperator = (session) => session.operator;

/* goesOn: the view reads again and again by itself. */
const VIEWS = {
  keys: { label: "Keys", show: showKeys, isFor: isUser },
  locks: { label: "Locks", show: showLocks, isFor: isUser, goesOn: true },
  clients: { label: "Clients", show: showClients, isFor: isOperator, goesOn: true },
  live: { label: "Live", show: showLive, isFor: isOperator, goesOn: true },
  health: { label: "Health", show: showHealth, isFor: () => true, goesOn: true },
  control: { label: "Control", show: showControl, isFor: (session) => session.operator && session.control },
};

const byId = (id) => document.getElementById(id);
const isDialogOpen = () => document.querySelector("dialog") !== null;
let session = null;
let view = null;
let viewEnd = new AbortController();

function openPlace(title, classes) {
  viewEnd.abort();
  viewEnd = new AbortController();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  document.title = `${title} – statestored`;
  const place = el("div", { className: classes });
  byId("main").replaceChildren(place);
  return place;
}

function showView() {
  if (!session) return;
  const wanted = location.hash.slice(1);
  const allowed = Object.keys(VIEWS).filter((name) => VIEWS[name].isFor(session));
  const current = allowed.includes(wanted) ? wanted : allowed[0];

  byId("nav").replaceChildren(...allowed.map((name) =>
    el("a", { href: `#${name}`, "aria-current": name === current ? "page" : null }, VIEWS[name].label)));
  byId("account").replaceChildren(...(isUser(session) ? [
    faint(session.operator ? "Operator" : "User"), shown(session.user, 40),
    session.login === "token" ? button("Log out", () => logOut(), "plain") : "",
  ] : []));
  view = VIEWS[current];
  view.show(openPlace(view.label, `view view-${current}`), session, viewEnd.signal);
}

function showLogin(reason) {
  const token = textInput({ type: "password", required: true });
  const submit = () => {
    logIn(token.value.trim());
    start();
  };
  session = null;
  byId("nav").replaceChildren();
  byId("account").replaceChildren();
  openPlace("Log in", "login card").append(
    el("h1", "Log in"), form(submit, labelled("Token", token), button("Log in", null, "primary")),
    el("p.hint", "An operator makes it: statestorectl console-token NAME. It is kept until this tab is closed."),
    reason ? errorBox(new Error(reason)) : "");
  token.focus();
}

async function start() {
  try {
    session = await getJson("/api/session");
  } catch {
    return;
  }
  if (session.login === "token" && !isUser(session)) showLogin();
  else showView();
}

connection.addEventListener("offline", ({ detail }) => {
  byId("banner").textContent = `${detail} Trying again…`;
  byId("banner").hidden = false;
});
connection.addEventListener("online", () => {
  byId("banner").hidden = true;
  if (!session || !(view.goesOn || isDialogOpen())) start();
});
connection.addEventListener("logged-out", ({ detail }) => showLogin(detail));
window.addEventListener("hashchange", showView);
setInterval(updateCountdowns, 1000);
start();
