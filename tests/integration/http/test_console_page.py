# SPDX-License-Identifier: Apache-2.0
"""The console's page, in a browser, with a store."""

import re
import shlex
import signal

import pytest

from support import resp
from support.broker import free_port
from support.browser import Page, running_browser
from support.console import Console
from support.ctl import Ctl
from support.double import running_double
from support.process import wait_until

pytestmark = [
    pytest.mark.xdist_group("console_page"),  # one browser and one store serve all of them
    pytest.mark.not_sanitized("test_console_api asks for the same, without a browser"),
]

WIDE, NARROW = (1400, 900), (400, 800)
# Background and text of the body.
SCHEMES = {"light": ("rgb(244, 246, 249)", "rgb(24, 32, 44)"), "dark": ("rgb(18, 22, 29)", "rgb(228, 233, 241)")}


def url_of(store):
    [url] = set(re.findall(r"at (https?://[\d.]+:\d+)/", store.log()))
    return url


@pytest.fixture(scope="module")
def browser():
    with running_browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def double(browser, tmp_path_factory):
    """One store for most tests of this file: each of them has its own keys."""
    with running_double(tmp_path_factory.mktemp("double"), "--control") as double:
        yield double


@pytest.fixture
def page(browser, double):
    page = Page(browser, url_of(double))
    yield page
    assert page.errors() == []


def test_a_key_is_found_and_shown(page):
    page.open("keys").request("SET", "find/a/config", '{"rate":1.50,"id":12345678901234567890}', "PX", "600000")
    page.request("SET", "find/b", "other")
    page.type("input[type=search]", "find/*\n")
    page.open_row("find/", "a/", "config")

    page.shows('"rate": 1.50,\n  "id": 12345678901234567890', ".value")
    assert "min" in page.shows("Version", ".details")
    page.press("Hex")
    page.shows("00000000  7b 22 72 61", ".value")


def test_lines_of_json_are_a_table(page):
    page.open("keys").request("SET", "ndjson", '{"time":1,"<b>":"x"}\n{"time":2}\n')
    page.type("input[type=search]", "ndjson\n")
    page.open_row("ndjson")

    assert page.shows("time", ".value th") == "time\n<b>"


def test_many_keys_are_read_in_parts_and_searched_on_the_server(browser, tmp_path):
    """With a store of its own: Control would show all these requests to the other tests."""
    with running_double(tmp_path) as double:
        page = Page(browser, url_of(double)).open("keys")
        many = double.connect("many")
        for i in range(2100):
            many.send("SET", f"many/{i}", "v")
        many.request("GET", "many/0")
        page.type("input[type=search]", "many/*\n")
        page.shows("and there are more", ".list-status")
        page.press("Load more")
        page.shows("2,100 keys", ".list-status")

        page.type("input[type=search]", "many/7\n")
        page.shows("111 keys", ".list-status")
        assert page.errors() == []


def test_a_change_is_shown_before_it_is_written(page):
    page.open("keys").request("SET", "change", "one\ntwo")
    page.type("input[type=search]", "change\n")
    page.open_row("change")
    page.press("Edit")
    page.type("dialog textarea", "one\n2")
    page.press("Show the difference")
    assert page.shows("+ 2", ".diff").split("\n") == ["  one", "- two", "+ 2"]

    page.press("Write")
    page.shows("one\n2", ".value")


def test_of_two_people_who_edit_a_key_the_second_is_asked(page):
    page.open("keys").request("SET", "shared", "first")
    page.type("input[type=search]", "shared\n")
    page.open_row("shared")
    page.press("Edit")
    page.type("dialog textarea", "mine")
    page.press("Show the difference")
    page.request("SET", "shared", "theirs")
    page.press("Write")

    page.shows("Nothing was changed: somebody else changed the key", "dialog .warning")
    page.shows("- theirs\n+ mine", ".diff")
    assert page.request("VDEL", "shared", "mine") == "number", "the value is still theirs"
    page.press("Cancel")
    page.press("Reload")
    page.shows("theirs", ".value")


def test_a_value_is_set_from_a_file_and_downloaded(page, double, tmp_path):
    value = bytes(range(256)) * 300
    (tmp_path / "value.bin").write_bytes(value)
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.open("keys").request("SET", "file/a", "text")
    page.type("input[type=search]", "file/*\n")
    page.open_row("file/", "a")
    page.press("Edit")
    page.find("dialog input[type=file]").send_keys(str(tmp_path / "value.bin"))
    page.press("Show the difference")
    page.shows("+ 00000000  00 01 02 03", ".diff")
    page.press("Write")

    page.shows("A large value", ".detail")
    assert resp.read(double.connect("reader").request("GET", "file/a").payload) == value
    assert page.text(".value") == "", "it is loaded only when asked"
    page.press("Load it")
    page.shows("00000000  00 01 02 03", ".value")
    page.press("Download")
    wait_until((tmp_path / "file_a").exists, "the value is downloaded")
    assert (tmp_path / "file_a").read_bytes() == value


def test_a_long_text_is_loaded_and_shown_when_asked(page):
    page.open("keys").request("SET", "large", "x" * 70000 + "end")
    page.open("live").click(".link", "large")
    page.shows("A large value", ".detail")
    assert "68.4 KiB\n" in page.text(".details"), "the exact size is not known yet"
    page.press("Load it")
    page.shows("68.4 KiB (70,003 bytes)", ".details")
    page.press("Show all 70,003 characters")
    assert page.shows("xend", ".value") == "x" * 70000 + "end"


def test_a_change_is_copied_as_a_command(page, double):
    page.open("keys").request("SET", "copy/a", "old", "PX", "600000")
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {
        "origin": page.url, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.type("input[type=search]", "copy/*\n")
    page.open_row("copy/", "a")
    page.press("Edit")
    page.type("dialog textarea", "it's new")
    page.find("dialog select").send_keys("Never")
    page.press("Show the difference")
    page.press("Copy as statestorectl")
    page.shows("Copied.", "#status")
    command = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")

    assert command == r"statestorectl set copy/a 'it'\''s new'"
    Ctl(double.port).ok(*shlex.split(command)[1:])
    page.press("Cancel")
    page.press("Reload")
    page.shows("it's new", ".value")


def test_a_key_with_a_fencing_token_needs_a_confirmation(page):
    page.open("keys")
    page.request("SET", "fenced", "v", fence="001795219608228:00000:StateStore")
    page.type("input[type=search]", "fenced\n")
    page.open_row("fenced")
    page.press("Delete")
    page.shows("A fencing token protects this key", "dialog .warning")
    assert not page.driver.find_element("css selector", "dialog .danger").is_enabled()
    page.click("dialog input[type=checkbox]")
    page.press("Delete")

    page.shows("This key does not exist", ".detail")


def test_a_new_key_expires_and_is_not_written_over_another(page):
    page.open("keys").request("SET", "new/old", "v")
    page.press("New key")
    page.type("dialog input", "new/old")
    page.press("Show the difference")
    page.shows("the key exists already", "dialog .warning")
    page.press("Cancel")

    page.press("New key")
    page.type("dialog input", "new/key")
    page.type("dialog textarea", "value")
    page.find("dialog select").send_keys("After … min")
    page.press("Show the difference")
    page.press("Write")
    page.shows("value", ".value")
    page.shows("min", ".details .countdown")


def begin_to_delete_three_keys(page, folder):
    page.open("keys")
    for name in "a", "b", "c":
        page.request("SET", f"{folder}/{name}", "v")
    page.type("input[type=search]", f"{folder}/*\n")
    page.shows("3 keys", ".list-status")
    page.press("Delete by pattern")


def test_keys_are_deleted_by_pattern_after_their_list(page):
    begin_to_delete_three_keys(page, "bulk")
    page.press("List the keys")
    assert "bulk/b" in page.shows("bulk/a", "dialog table")
    page.request("SET", "bulk/b", "changed")
    page.press("Delete 3 keys")

    page.shows("2 deleted; 1 left alone", "dialog [role=status]")
    page.press("Close")
    page.shows("1 key", ".list-status")


def test_keys_are_deleted_by_pattern_up_to_a_limit(page):
    begin_to_delete_three_keys(page, "limit")
    page.type("dialog input[type=number]", "2")
    page.press("List the keys")
    page.shows("The first 2 keys found.", "dialog")
    page.press("Delete 2 keys")
    page.shows("2 deleted.", "dialog [role=status]")
    page.press("Close")
    page.shows("1 key that", ".list-status")


MARKUP = "<img src=x onerror=document.title='evil'>"
HOSTILE = [MARKUP, "a\u202egpj.exe", "c\x00\x01\x1b[31m\n", "العربية/مفتاح", "long/" + "x" * 65000]


def assert_text_is_harmless(page, title):
    assert page.driver.title == f"{title} – statestored"
    assert not page.driver.find_elements("css selector", "main img, main script, dialog img, dialog script")
    assert not re.search("[\0\x01\x1b\u202e]", page.driver.execute_script("return document.body.textContent"))
    assert page.too_wide() == []


@pytest.mark.parametrize("name", HOSTILE, ids=["markup", "direction", "control", "right_to_left", "long"])
def test_a_hostile_key_is_text(page, name):
    page.open("keys").request("SET", name, name[:1000])
    page.type("input[placeholder=flat]", "\n")
    page.type("input[type=search]", "*" + re.sub(r"[^a-zء-ي]", "?", name[:8]) + "*\n")
    page.shows("1 key", ".list-status")
    page.click(".list .row")
    page.shows("Version", ".details")
    page.request("DEL", name)

    assert_text_is_harmless(page, "Keys")


HOSTILE_CLIENT, HOSTILE_KEY, HOSTILE_VALUE = (f"{MARKUP}\u202e{end}" for end in ("client", "key\0\x1b[31m", "value\0\x1b[31m"))
SHOWN_CLIENT, SHOWN_KEY, SHOWN_VALUE = (
    f"{MARKUP}\\u{{202e}}{end}" for end in ("client", "key\\0\\x1b[31m", "value\\0\\x1b[31m"))


@pytest.fixture
def hostile_client(double):
    """A client that holds a lock and watches it. MQTT has no control characters in client ids."""
    client = double.connect(HOSTILE_CLIENT)
    client.watch(HOSTILE_KEY)
    client.request("SET", HOSTILE_KEY, HOSTILE_VALUE, "PX", "600000")
    yield
    client.request("DEL", HOSTILE_KEY)
    client.close()


@pytest.mark.parametrize("title, texts", [
    ("Locks", [SHOWN_CLIENT, SHOWN_KEY, SHOWN_VALUE]), ("Clients", [SHOWN_CLIENT]), ("Live", [SHOWN_CLIENT, SHOWN_KEY]),
    ("Control", [SHOWN_CLIENT, SHOWN_KEY, SHOWN_VALUE])])
@pytest.mark.usefixtures("hostile_client")
def test_hostile_names_and_values_are_text_in_each_table(page, title, texts):
    page.open(title.lower()).shows(SHOWN_CLIENT, "tbody bdi")

    for text in texts:
        assert text in page.text("tbody bdi")
    directions = page.driver.execute_script("return [...document.querySelectorAll('tbody bdi')].map((each) => each.dir)")
    assert set(directions) <= {"ltr", "auto"}
    assert_text_is_harmless(page, title)


@pytest.mark.usefixtures("hostile_client")
def test_hostile_names_are_text_in_dialogs(page):
    page.open("clients").click(".link", SHOWN_CLIENT)
    page.shows(SHOWN_KEY, "dialog td bdi")
    assert_text_is_harmless(page, "Clients")
    page.open("locks").click(".link", SHOWN_KEY)
    page.press("Watchers")
    page.shows(SHOWN_CLIENT, "dialog td bdi")
    assert_text_is_harmless(page, "Keys")


def test_locks_show_their_holder_and_who_waits(page, double):
    holder, waiter = double.connect("holder"), double.connect("waiter")
    holder.request("SET", "lock/own", "holder", "NX", "PX", "60000")
    waiter.watch("lock/own")
    page.open("locks").shows("lock/own", "tbody")

    row = page.driver.find_element("xpath", "//tr[contains(., 'lock/own')]")
    assert "holder" in row.text and "waiter" in row.text
    version, token = [element.get_attribute("title") for element in row.find_elements("css selector", "[title]")]
    assert version == token, "a lock without a fencing token of its own has its version as the token"


def test_clients_show_who_watches(page, double):
    double.connect("watcher").watch("watched")
    page.open("clients")
    page.click(".link", "watcher")
    page.shows("watched", "dialog td")
    page.press("✕")
    page.type("input", "watched\n")
    page.shows("watcher", "dialog td")
    page.press("✕")
    double.connect("another").watch("also")
    page.open("clients").press("Show")
    page.shows("another", "dialog td")


def test_events_are_shown_as_they_happen(page, double):
    client = double.connect("actor")
    client.request("SET", "live/early", "v")
    page.open("live").shows("live/early", "tbody")
    page.type("input[type=search]", "live/*\n")
    page.shows("1 event")
    assert page.text("tbody").count("live/early") == 1, "the filter also applies to what has happened already"
    client.request("SET", "live/a", "value")
    client.request("SET", "other", "value")
    client.request("DEL", "live/a")
    assert page.shows("deleted", "tbody").count("live/a") == 2

    page.press("Pause")
    client.request("SET", "live/b", "value")
    assert page.shows("Paused; 1 new", ".view-head [role=status]") == "Paused; 1 new event"
    assert "live/b" not in page.text("tbody")
    page.press("Continue")
    assert "other" not in page.shows("live/b", "tbody")


def test_events_show_an_expiry_and_are_filtered_by_client(page, double):
    for name in "live-1", "live-2":
        double.connect(name).request("SET", f"expiring/{name}", "v", "PX", "1")
    page.open("live").type("input[type=search]", "expiring/*\n")
    page.shows("4 events")
    expired = page.driver.find_elements("xpath", "//tbody/tr[contains(., 'expired') and contains(., 'the store')]")
    assert {row.find_element("css selector", ".link").text for row in expired} == {"expiring/live-1", "expiring/live-2"}

    page.type("input[placeholder='All clients']", "live-2\n")
    page.shows("1 event")
    assert "live-1" not in page.shows("live-2", "tbody")


def test_events_say_why_a_request_changed_nothing(page, double):
    client = double.connect("refusals")
    client.request("SET", "why/nx", "v")
    client.request("SET", "why/nx", "w", "NX")
    client.request("VDEL", "why/nx", "w")
    client.request("SET", "why/fence", "v", ft="001795219608228:00000:StateStore")
    client.request("SET", "why/fence", "w")
    page.open("live")
    page.type("input[type=search]", "why/*\n")

    text = page.shows("5 events") and page.text("tbody")
    assert text.count("condition not met") == 2
    for reason in "SET the key exists", "VDEL the key has another value", "SET a fencing token is required":
        assert reason in text


def test_health_shows_the_state_and_charts(page):
    page.open("health").shows("Ready", ".state")

    assert {"Requests", "Waiting time", "Memory"} <= set(page.shows("Requests", "figcaption h3").split("\n"))
    assert "connected" in page.text(".tiles")


def test_health_says_what_to_do_without_a_broker(browser, site):
    store = site.start_store("--http-listen", "0")
    page = Page(browser, url_of(store))
    site.broker.kill()
    wait_until(lambda: not Console(store).json("/api/health")["ready"], "the store has noticed it")
    page.open().shows("statestorectl doctor", ".state.bad")
    site.broker.start_again()


def test_a_full_store_refuses_a_key_and_health_says_what_to_do(browser, tmp_path):
    with running_double(tmp_path, "--max-keys", "2") as double:
        page = Page(browser, url_of(double)).open("keys")
        page.request("SET", "a", "v")
        page.request("SET", "b", "v")
        page.press("New key")
        page.type("dialog input", "c")
        page.press("Show the difference")
        page.press("Write")
        page.shows("the quota has been exceeded: Health shows the limits", "dialog .error")
        page.press("Cancel")

        page.click("#nav a", "Health")
        assert "raise max-keys" in page.shows("2 of at most 2 keys", ".warning")
        assert page.errors() == []


def test_control_moves_the_clock_and_shows_the_journal(page, double):
    double.connect("client").request("SET", "journal", "a value")
    page.open("control")
    assert "+OK" in page.shows("a value", "tbody")
    page.type("input", "clock advance 1h\n")
    page.shows("OK", ".card pre")
    page.type("input", "nonsense\n")
    page.find(".card .error")


def test_the_keyboard_alone_is_enough(page):
    from selenium.webdriver.common.keys import Keys

    page.open("keys").request("SET", "keyboard/a", "v")
    page.request("SET", "keyboard/b", "value")
    page.type("input[type=search]", "keyboard/*\n")
    page.shows("2 keys", ".list-status")
    page.tab_to(".list .row", Keys.TAB)
    page.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.END, Keys.ENTER)
    page.shows("value", ".value")
    page.keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    page.shows("2 keys", ".list")
    page.tab_to(".detail .primary", Keys.TAB)
    page.keys(Keys.ENTER)
    page.find("dialog textarea:focus")
    for _ in range(10):
        page.keys(Keys.TAB)
        assert page.focused("dialog, dialog *, body"), "the focus stays in the dialog, or is in the browser's own controls"
    page.keys(Keys.ESCAPE)
    page.find(".detail .primary:focus")


def test_the_keyboard_alone_changes_a_value(page):
    from selenium.webdriver.common.keys import Keys

    page.open("keys").request("SET", "typed/a", "value")
    page.type("input[type=search]", "typed/a\n")
    page.shows("1 key that", ".list-status")
    page.tab_to(".list .row", Keys.TAB)
    page.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    page.shows("value", ".value")
    page.tab_to(".detail .primary", Keys.TAB)
    page.keys(Keys.ENTER)
    page.find("dialog textarea:focus")
    page.keys(Keys.END, " changed")
    page.tab_to("dialog .primary", Keys.TAB)
    page.keys(Keys.SPACE)
    page.shows("+ value changed", ".diff")
    page.tab_to("dialog .primary", Keys.TAB)
    page.keys(Keys.ENTER)
    page.shows("value changed", ".value")


@pytest.fixture
def wide_content(double):
    """A lock with a long name, whose value is a long line, and its holder."""
    holder = double.connect("wide-" + "c" * 60)
    holder.watch("wide/" + "k" * 200)
    holder.request("SET", "wide/" + "k" * 200, "w" * 5000, "PX", "600000")
    yield
    holder.close()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("view", ["keys", "locks", "clients", "live", "health", "control"])
@pytest.mark.usefixtures("wide_content")
def test_each_view_fits_its_window(page, size, view):
    page.resize(*size)
    page.open(view).find(f".view-{view} :is(.list .row, tbody tr, .chart svg)")
    assert page.too_wide() == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.usefixtures("wide_content")
def test_a_key_and_each_dialog_fit_the_window(page, size):
    page.resize(*size)
    page.open("keys").type("input[type=search]", "wide/*\n")
    page.press("New key")
    assert page.too_wide() == []
    page.press("Cancel")
    page.press("Delete by pattern")
    page.press("List the keys")
    page.shows("wide/", "dialog tbody")
    assert page.too_wide() == []
    page.press("Cancel")

    page.open_row("wide/", "k" * 120 + "…")
    page.shows("w" * 100, ".value")
    assert page.too_wide() == []
    page.press("Watchers")
    page.shows("wide-", "dialog tbody")
    assert page.too_wide() == []
    page.press("✕")
    page.press("Edit")
    page.type("dialog textarea", "other")
    assert page.too_wide() == []
    page.press("Show the difference")
    page.shows("+ other", ".diff")
    assert page.too_wide() == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_scheme_of_the_system_decides_the_colors(page, scheme):
    page.resize(*WIDE, scheme)
    page.open("health").find(".chart svg")
    colors = page.driver.execute_script("const style = getComputedStyle(document.body); "
                                        "return [style.backgroundColor, style.color];")

    assert tuple(colors) == SCHEMES[scheme]


def test_a_narrow_window_shows_all_cells_of_a_row(page, double):
    double.connect("narrow").request("SET", "narrow", "v", "NX", "PX", "60000")
    page.resize(*NARROW)
    page.open("locks").shows("narrow", "tbody")

    cells = page.driver.find_elements("css selector", "tbody tr:first-child td")
    assert len(cells) == 6
    assert all(cell.rect["x"] + cell.rect["width"] <= NARROW[0] for cell in cells)


def test_a_narrow_window_shows_the_list_or_the_key(page):
    page.open("keys").request("SET", "narrow", "v")
    page.resize(*NARROW)
    page.type("input[type=search]", "narrow\n")
    page.open_row("narrow")
    page.shows("Version", ".details")
    assert not page.driver.find_element("css selector", ".list").is_displayed()
    page.press("‹ Keys")
    page.find(".list .row", "narrow")


def test_the_page_says_that_the_server_is_lost_and_goes_on_when_it_is_back(browser, tmp_path):
    flags = "--http-listen", f"127.0.0.1:{free_port()}"
    with running_double(tmp_path, *flags) as double:
        page = Page(browser, url_of(double)).open("live")
        page.shows("Waiting for events")
    page.shows("The server does not answer", "#banner:not([hidden])")

    with running_double(tmp_path, *flags) as double:
        page.find("body:has(#banner[hidden])")
        page.request("SET", "again", "v")
        page.shows("again", "tbody")
    page.errors()


def test_a_token_decides_what_is_shown(browser, site, users):
    page = Page(browser, url_of(site.start_store("--http-listen", "0", "--console-users", users.file))).open()
    page.type("input[type=password]", users.alice + "\n")
    page.shows("alice", "#account")
    assert page.text("#nav").split() == ["Keys", "Locks", "Health"]
    page.press("Log out")
    page.type("input[type=password]", users.bob + "\n")
    page.shows("bob", "#account")
    assert page.text("#nav").split() == ["Keys", "Locks", "Clients", "Live", "Health"]
    assert users.bob not in browser.execute_script("return location.href")

    page.press("Log out")
    page.type("input[type=password]", "wrong\n")
    page.shows("This token is not known to the store")


def test_without_users_only_health_is_shown(browser, site):
    page = Page(browser, url_of(site.start_store("--http-listen", "0"))).open()

    page.shows("Only Health is shown")
    assert page.text("#nav").split() == ["Health"]


POLICY = """
[open]
access = readwrite
any = yes
pattern = {pattern}
"""


def test_a_policy_hides_keys_from_a_user(browser, site, users, tmp_path):
    policy = tmp_path / "policy.conf"
    policy.write_text(POLICY.replace("{pattern}", "*"))
    store = site.start_store("--http-listen", "0", "--console-users", users.file, "--policy", policy, "--allow-unverified", "on")
    for key in "open/a", "open/b", "hidden/c", "hidden/d":
        site.connect().request("SET", key, "v")
    page = Page(browser, url_of(store)).open("keys")
    page.type("input[type=password]", users.alice + "\n")
    page.shows("4 keys", ".list-status")

    policy.write_text(POLICY.replace("{pattern}", "open/*"))
    store.child.send_signal(signal.SIGHUP)
    store.wait_for_log("configuration reloaded")
    page.press("Search")
    page.shows("2 keys that you may read", ".list-status")
    assert "hidden" not in page.text(".list")
    page.press("New key")
    page.type("dialog input", "hidden/e")
    page.press("Show the difference")
    page.shows("not authorized: no rule of the policy grants it", "dialog .error")
