"""A page in headless Chromium, asked over DevTools' pipe: no port, no web socket, no driver.

The pipe speaks JSON messages that end in a NUL byte, on the browser's descriptors 3 (in) and 4 (out).
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1300,900", "--remote-debugging-pipe"),
)


class Page:
    """One tab. `requests` are the addresses that it asked for."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self._loaded = False
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        self._loaded = False
        self._call("Page.navigate", url=url)
        deadline = time.monotonic() + 60
        while not self._loaded:
            assert time.monotonic() < deadline, "the page did not load"
            self._receive()

    def evaluate(self, expression: str) -> Any:
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], 60)
            assert ready, "Chromium does not answer"
            data = os.read(self._in, 1 << 16)
            assert data, "Chromium has gone"
            self._buffer += data
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif message.get("method") == "Page.loadEventFired":
            self._loaded = True
        return message


@contextmanager
def chromium() -> Iterator[Page]:
    """A fresh browser with a profile of its own; gone afterwards."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()

    def place() -> None:
        os.dup2(in_read, 3)
        os.dup2(out_write, 4)

    # Its helpers may still write into the profile while it is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The pipe's ends may be 3 and 4 themselves: move them out of the way first.
        in_read, out_write = os.dup(in_read), os.dup(out_write)
        command = ["chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=place,  # noqa: PLW1509 - the tests start no thread before
            pass_fds=(3, 4, in_read, out_write),
            start_new_session=True,
        )
        try:
            yield Page(in_write, out_read)
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
