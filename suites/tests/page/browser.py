"""What all tests of pages share: a run in which checks failed, made once, and a browser.

PROGRAM is the command that runs ccm-conformance, BROWSER the path of a Chromium.
"""

import atexit
import functools
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

from playwright.sync_api import sync_playwright

PROGRAM = shlex.split(os.environ["PROGRAM"])
ROOT = pathlib.Path(__file__).parents[3]
PHONE = {"viewport": {"width": 400, "height": 900}}


def ccm_conformance(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False)


@functools.cache
def folder():
    """A folder for the whole of the tests."""
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    return pathlib.Path(made.name)


@functools.cache
def failed_run():
    """The results of a run with no CCM at all, in which two checks fail."""
    out = folder() / "results"
    only = ["--only", "NODE-INIT-01", "--only", "SVC-CREATE-02"]
    ran = ccm_conformance("run", "--cluster", "embedded", "--profile", "null", *only, "--out", str(out))
    if ran.returncode != 1:
        raise AssertionError(f"exit code {ran.returncode}: {ran.stderr}")
    return out


@functools.cache
def full_run():
    """The page of a submitted report, in which every check ran."""
    place = folder() / "submitted"
    place.mkdir()
    stream = ROOT / "docs/reports/1.36/openstack/events.jsonl.gz"
    (place / stream.name).write_bytes(stream.read_bytes())
    ccm_conformance("replay", str(place / stream.name))
    return place / "report.html"


def events():
    return [json.loads(line) for line in (failed_run() / "events.jsonl").read_text().splitlines()]


def replayed(lines, name):
    """The page of a stream of events."""
    place = folder() / name
    place.mkdir()
    # Streams are written in one form: without spaces, and with unescaped letters.
    form = {"separators": (",", ":"), "ensure_ascii": False}
    (place / "events.jsonl").write_text("".join(f"{json.dumps(line, **form)}\n" for line in lines))
    ccm_conformance("replay", str(place / "events.jsonl"))
    return place / "report.html"


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.out = failed_run()
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        cls.browser = cls.playwright.chromium.launch(executable_path=os.environ["BROWSER"], args=arguments)
        cls.addClassCleanup(cls.browser.close)

    def opened(self, file, fragment="", **context):
        return self.at(file.as_uri(), "file:", fragment, **context)

    def at(self, address, own, fragment="", **context):
        page = self.browser.new_page(**context)
        self.addCleanup(page.close)
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("console", lambda said: page.troubles.append(said.text) if said.type == "error" else None)
        page.on("request", lambda asked: page.troubles.append(asked.url) if not asked.url.startswith(own) else None)
        page.goto(f"{address}#{fragment}")
        page.wait_for_selector("html[data-ready]", timeout=30_000)
        return page

    def compared(self, before, after, *options):
        page = folder() / "compare.html"
        reports = [str(before / "report.yaml"), str(after / "report.yaml")]
        return ccm_conformance("compare", *options, "--html", str(page), *reports), page
