"""A headless Chromium under our control: what a page requests, what its scripts say, what it looks like.

Speaks the DevTools protocol over the web-socket client of tornado, which Jupyter brings along anyway.
"""

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClientConnection, websocket_connect

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-port=0",
)


def find_chromium() -> str | None:
    """The path of Chromium (or Chrome) on this machine, None if there is none."""
    return next((path for path in map(shutil.which, _NAMES) if path), None)


class Browser:
    """A Chromium with one tab, as a context manager.

    Attributes
    ----------
    requests : list of str
        Addresses requested since the last :meth:`open`.
    failed : list of str
        Those that failed, with the reason.
    messages : list of str
        Errors and warnings of the page's scripts since then.
    downloads : Path
        The folder that downloads go to.
    """

    def __init__(self, executable: str, timeout: float = 60.0) -> None:
        self._executable = executable
        self._timeout = timeout
        self._loop = IOLoop(make_current=False)
        self._number = 0
        self._session: str | None = None
        self._addresses: dict[str, str] = {}
        self._forget()

    def __enter__(self) -> "Browser":
        self._folder = tempfile.TemporaryDirectory(prefix="mdsd-chromium-", ignore_cleanup_errors=True)
        self.downloads = Path(self._folder.name) / "downloads"
        command = [self._executable, *_FLAGS, f"--user-data-dir={self._folder.name}/profile", "about:blank"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            self._connect(self._wait_for_address())
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()
        if self._session is not None:
            while self._run(self._socket.read_message) is not None:  # None: the connection is closed
                pass
            self._socket.close()
        self._loop.close()
        self._folder.cleanup()

    def _wait_for_address(self) -> str:
        said = []
        assert self._process.stderr is not None
        for line in self._process.stderr:  # ends when the process does
            said.append(line)
            match = re.search(r"DevTools listening on (ws://\S+)", line)
            if match:
                return match[1]
        raise RuntimeError(f"Chromium did not start:\n{''.join(said)}")

    def _connect(self, address: str) -> None:
        connect = partial(websocket_connect, address, max_message_size=2**28)
        self._socket: WebSocketClientConnection = self._run(connect)
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def _run(self, work: Callable[[], Any]) -> Any:
        return self._loop.run_sync(work, timeout=self._timeout)

    def _read(self) -> dict[str, Any]:
        """The next message; events are noted."""
        text = self._run(self._socket.read_message)
        if text is None:
            raise RuntimeError("Chromium closed the connection")
        message: dict[str, Any] = json.loads(text)
        if "id" not in message:
            self._note(message["method"], message["params"])
        return message

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session and not method.startswith("Browser."):
            message["sessionId"] = self._session
        self._run(partial(self._socket.write_message, json.dumps(message)))
        while (answer := self._read()).get("id") != self._number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def _forget(self) -> None:
        self._loaded = False
        self.requests: list[str] = []
        self.failed: list[str] = []
        self.messages: list[str] = []

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Network.requestWillBeSent":
            address = self._addresses[about["requestId"]] = about["request"]["url"]
            self.requests.append(address)
        elif event == "Network.loadingFailed":
            address = self._addresses.get(about["requestId"], "?")
            self.failed.append(f"{address}: {about['errorText']}")
        elif event == "Network.responseReceived" and about["response"]["status"] >= 400:
            self.failed.append(f"{about['response']['url']}: status {about['response']['status']}")
        elif event == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            words = [str(argument.get("value", argument.get("description"))) for argument in about["args"]]
            self.messages.append(f"{about['type']}: {' '.join(words)}")
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.messages.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")

    def open(self, address: str, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Show a page in a window of that size, and wait until it is loaded and its mathematics are set."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", media="screen", features=scheme)
        self._resize(width, height)
        self._navigate("about:blank")  # a script of the last page must not add to what we note
        self._navigate(address)
        self.until(_READY)

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window another size; below 600 it behaves as a phone's."""
        self._resize(width, height)
        self.until(f"screen.width === {width}")

    def _resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "screenWidth": width, "screenHeight": height}
        self._call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=width < 600)

    def _navigate(self, address: str) -> None:
        self._forget()
        answer = self._call("Page.navigate", url=address)
        if "errorText" in answer:
            raise RuntimeError(f"{address}: {answer['errorText']}")
        while not self._loaded:
            self._read()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        self.wait_for(lambda: bool(self.evaluate(expression)))

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds on this side (a downloaded file, say)."""
        end = time.monotonic() + self._timeout
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"nothing came of {self._timeout:g} seconds of waiting")
            time.sleep(0.05)

    def press(self, key: str, code: int = 0) -> None:
        """Press a key and let it go, by its DevTools name (``"Tab"``, ``"ArrowRight"``) and its key code."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


#: The mathematics of the page are set, if it has any.
_READY = """!document.querySelector("script[src*=mathjax]")
    || !!window.MathJax?.startup?.promise && window.MathJax.startup.promise.then(() => true)"""
