# SPDX-License-Identifier: Apache-2.0
"""A client of the console."""

import contextlib
import http.client
import json
import re
import subprocess
import urllib.parse

from support import resp
from support.process import CTL, PATIENCE


class Console:
    """A client of the console of a store, whose log tells the port."""

    def __init__(self, store, context=None):
        [(self.scheme, self.host, self.port)] = set(re.findall(r"at (https?)://([\d.]+):(\d+)/", store.log()))
        self.context = context

    def _connection(self):
        if self.context:
            return http.client.HTTPSConnection("127.0.0.2", int(self.port), timeout=PATIENCE, context=self.context)
        return http.client.HTTPConnection(self.host, int(self.port), timeout=PATIENCE)

    def ask(self, path, token=None, method="GET", body=None, **headers):
        """Return the status, the headers and the body of the response."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        with contextlib.closing(self._connection()) as connection:
            connection.request(method, path, body, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def status(self, *arguments, **more):
        return self.ask(*arguments, **more)[0]

    def json(self, *arguments, **more):
        status, headers, body = self.ask(*arguments, **more)
        assert (status, headers["Content-Type"], headers["Cache-Control"]) == (200, "application/json", "no-store")
        return json.loads(body)

    def post(self, path, token, *words, **headers):
        return self.ask(path, token, "POST", resp.request(*words), Content_Type="application/octet-stream", **headers)

    def request(self, token, *words, **headers):
        """Return the payload of the reply to a request of the user, and the headers."""
        status, headers, body = self.post("/api/request", token, *words, **headers)
        assert status == 200, body
        return body, headers

    def keys(self, token, pattern="*", path="/api/keys"):
        """Return the keys of all pages."""
        keys, query = [], {"pattern": pattern}
        while True:
            page = self.json(f"{path}?{urllib.parse.urlencode(query)}", token)
            keys += page["keys"]
            if "token" not in page:
                return keys
            query["token"] = page["token"]

    @contextlib.contextmanager
    def events(self, token=None, query=""):
        """An open stream of events: iterate over pairs of the kind of event, or "message", and its data."""
        with contextlib.closing(self._connection()) as connection:
            connection.request("GET", f"/api/events?{query}", headers={"Authorization": f"Bearer {token}"} if token else {})
            response = connection.getresponse()
            assert (response.status, response.headers["Content-Type"]) == (200, "text/event-stream")
            yield read_events(response)

    def session(self, token=None):
        return self.json("/api/session", token)


def read_events(response):
    kind, data = "message", None
    for line in response:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            data = json.loads(value)
        elif not name and data is not None:
            yield kind, data
            kind, data = "message", None


class Users:
    """The file of users, with the user alice and the operator bob, and their tokens."""

    def __init__(self, directory):
        lines, (self.alice, self.bob) = zip(make_token("alice"), make_token("bob", "--operator"))
        self.file = directory / "console-users.conf"
        self.file.write_text("".join(lines))


def make_token(*arguments):
    """Return the line for the file of users, and the token."""
    result = subprocess.run([CTL, "console-token", *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return result.stdout, result.stderr.strip()
