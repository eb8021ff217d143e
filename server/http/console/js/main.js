/* SPDX-License-Identifier: Apache-2.0 */

/* The frame of the page: login, navigation, and the banner when the server is lost. */

import { connection, getJson, hasToken, logIn, logOut } from "./api.js";
import { showClients } from "./clients.js";
import { showControl } from "./control.js";
import { el, errorBox, labelled } from "./dom.js";
import { updateCountdowns } from "./format.js";
import { showHealth } from "./health.js";
import { showKeys } from "./keys.js";
import { showLive } from "./live.js";
import { showLocks } from "./locks.js";
import { shown } from "./text.js";
import { navigation } from "./views.js";

const isUser = (session) => session.user !== null;
const isOperator = (session) => isUser(session) && session.operator;
const VIEWS = {
  keys: { label: "Keys", show: showKeys, isFor: isUser },
  locks: { label: "Locks", show: showLocks, isFor: isUser },
  clients: { label: "Clients", show: showClients, isFor: isOperator },
  live: { label: "Live", show: showLive, isFor: isOperator },
  health: { label: "Health", show: showHealth, isFor: () => true },
  control: { label: "Control", show: showControl, isFor: (session) => isOperator(session) && session.control },
};

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const account = document.getElementById("account");
const banner = document.getElementById("banner");
let session = null;
let view = null;

function closeView() {
  view?.close?.();
  view = null;
  main.replaceChildren();
}

function allowedViews() {
  return Object.keys(VIEWS).filter((name) => VIEWS[name].isFor(session));
}

function showNav(current) {
  nav.replaceChildren(...allowedViews().map((name) =>
    el("a", { href: `#${name}`, "aria-current": name === current ? "page" : null }, VIEWS[name].label)));
}

function showView() {
  if (!session || (session.login === "token" && !isUser(session))) return;
  const wanted = location.hash.slice(1);
  const allowed = allowedViews();
  const name = allowed.includes(wanted) ? wanted : allowed[0];

  closeView();
  showNav(name);
  document.title = `${VIEWS[name].label} – statestored`;
  const container = el("div", { class: `view view-${name}` });
  main.append(container);
  view = VIEWS[name].show(container, session);
}

function showAccount() {
  const nodes = [];
  if (isUser(session)) {
    nodes.push(el("span", { class: "faint" }, session.operator ? "Operator " : "User "), shown(session.user, 40));
    if (session.login === "token") nodes.push(el("button", { class: "plain", onclick: () => logOut("") }, "Log out"));
  }
  account.replaceChildren(...nodes);
}

function showLogin(reason = "") {
  const token = el("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const output = el("div");
  closeView();
  nav.replaceChildren();
  account.replaceChildren();
  document.title = "Log in – statestored";
  if (reason) output.append(errorBox(new Error(reason)));
  main.append(el("form", {
    class: "login card",
    onsubmit: (event) => {
      event.preventDefault();
      logIn(token.value.trim());
      start();
    },
  }, el("h1", {}, "Log in"), labelled("Token", token,
    "The operator of this store makes it with statestorectl console-token NAME. It is kept until this tab is closed."),
  output, el("div", { class: "actions" }, el("button", { class: "primary" }, "Log in"))));
  token.focus();
}

function loginError(error) {
  if (error.status === 401) return "This token is not known to the store. Check that you pasted all of it.";
  if (error.status === 429) return "Too many wrong tokens came from this address. Wait a few seconds, then try again.";
  return error.message;
}

/* Ask the server who we are, then show the view of the address, or the login. */
async function start() {
  try {
    session = await getJson("/api/session");
  } catch (error) {
    if (error.status === 401 || error.status === 429) showLogin(loginError(error));
    return;
  }
  if (session.login === "token" && !isUser(session)) {
    showLogin(hasToken() ? loginError({ status: 401 }) : "");
    return;
  }
  showAccount();
  showView();
}

connection.addEventListener("offline", (event) => {
  banner.textContent = `${event.detail} Trying again…`;
  banner.hidden = false;
});
connection.addEventListener("online", () => {
  banner.hidden = true;
  /* A view that reads again and again has gone on, and a dialog is not closed; others are read again. */
  if (!view?.goesOn && !document.querySelector("dialog[open]")) start();
});
connection.addEventListener("logged-out", (event) => {
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
  showLogin(event.detail ? loginError({ status: 401 }) : "");
});
navigation.addEventListener("open", (event) => {
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
  if (location.hash === `#${event.detail}`) showView();
  else location.hash = event.detail;
});
/* As a link to #main it would change the view. */
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", showView);
setInterval(updateCountdowns, 1000);
start();
