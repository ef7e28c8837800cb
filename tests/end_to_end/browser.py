"""Drives a headless Chromium over the pipe of its DevTools protocol, with the standard library only.

    with Browser() as browser:
        page = browser.open(path, width=1280)
        page.value("document.title")
        page.press("ArrowRight")
        page.screenshot("page.png")
        page.complaints     # what the console said, exceptions, and requests to anywhere

A page sees no network: Chromium is told that every host is unreachable, and every request other
than the file itself is a complaint.
"""
import base64
import itertools
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE_S = 60


def find_browser():
    """The path of a Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="stepsim-browser-")
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        # Chromium reads descriptor 3 and writes descriptor 4.
        command = ('exec 3<&{0} 4>&{1}; exec "$0" "$@"').format(to_browser, from_browser)
        self.process = subprocess.Popen(
            ["bash", "-c", command, find_browser(), "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
             f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = itertools.count(1)
        self._answers = {}
        self._text = b""
        self.pages = {}  # by session

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self.process.kill()
        self.process.wait(timeout=PATIENCE_S)
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while number not in self._answers:
            self._read(until)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _read(self, until):
        ready, _, _ = select.select([self._from], [], [], max(0, until - time.monotonic()))
        if not ready:
            raise RuntimeError("the browser says nothing")
        block = os.read(self._from, 1 << 20)
        if not block:
            raise RuntimeError("the browser has ended")
        self._text += block
        *messages, self._text = self._text.split(b"\0")
        for message in messages:
            value = json.loads(message)
            if "id" in value:
                self._answers[value["id"]] = value
            elif value.get("sessionId") in self.pages:
                self.pages[value["sessionId"]].hear(value["method"], value["params"])

    def open(self, path, width=1280, dark=False, scripts=True):
        return Page(self, pathlib.Path(path).resolve().as_uri(), width, dark, scripts)


class Page:
    def __init__(self, browser, address, width, dark, scripts):
        self.browser = browser
        self.address = address
        self.complaints = []
        self.requests = []
        self.width = width
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width)
        if dark:
            self.call("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": "dark"}])
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Page.navigate", url=address)
        until = time.monotonic() + PATIENCE_S
        while self.value("document.readyState") != "complete":
            if time.monotonic() > until:
                raise RuntimeError("the page does not load")
            time.sleep(0.02)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def hear(self, method, parameters):
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {parameters['args']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {parameters['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.complaints.append(f"log: {parameters['entry'].get('text')}")
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            self.requests.append(url)
            if url != self.address and not url.startswith("data:") and url != "about:blank":
                self.complaints.append(f"request: {url}")

    def value(self, expression):
        """What a JavaScript expression says; works where the page's own scripts are off."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def press(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path, clip=None):
        if clip is None:
            height = self.value("document.documentElement.scrollHeight")
            clip = {"x": 0, "y": 0, "width": self.width, "height": height}
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                            clip={**clip, "scale": 1})
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    def pdf(self, path):
        paper = self.call("Page.printToPDF", printBackground=True)
        pathlib.Path(path).write_bytes(base64.b64decode(paper["data"]))
