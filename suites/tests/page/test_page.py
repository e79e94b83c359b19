"""report.html in a real browser: a run in which checks failed, and one whose texts are hostile.

PROGRAM is the command that runs ccm-conformance, BROWSER the path of a Chromium.
"""

import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import time
import unittest

from playwright.sync_api import sync_playwright

PROGRAM = shlex.split(os.environ["PROGRAM"])
HOSTILE = "</script><img src=x onerror=\"document.title='broken out'\"><b>bold</b>\u202e\x1b[31m"


def ccm_conformance(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.folder.name, "results")
        # With no CCM at all both fail.
        only = ["--only", "NODE-INIT-01", "--only", "SVC-CREATE-02"]
        ran = ccm_conformance("run", "--cluster", "embedded", "--profile", "null", *only, "--out", str(cls.out))
        if ran.returncode != 1:
            raise AssertionError(f"exit code {ran.returncode}: {ran.stderr}")
        cls.playwright = sync_playwright().start()
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        cls.browser = cls.playwright.chromium.launch(executable_path=os.environ["BROWSER"], args=arguments)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.folder.cleanup()

    def opened(self, file, fragment="", **context):
        page = self.browser.new_page(**context)
        self.addCleanup(page.close)
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("console", lambda said: page.troubles.append(said.text) if said.type == "error" else None)
        page.on("request", lambda asked: page.troubles.append(asked.url) if not asked.url.startswith("file:") else None)
        page.goto(f"{file.as_uri()}#{fragment}")
        page.wait_for_selector("html[data-ready]", timeout=30_000)
        return page

    def replayed(self, lines, name):
        folder = pathlib.Path(self.folder.name, name)
        folder.mkdir()
        (folder / "events.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        ccm_conformance("replay", str(folder / "events.jsonl"))
        return folder / "report.html"

    def events(self):
        return [json.loads(line) for line in (self.out / "events.jsonl").read_text().splitlines()]

    def test_a_failed_check_tells_its_story(self):
        page = self.opened(self.out / "report.html", "check=NODE-INIT-01")
        self.assertEqual(page.locator("h1 .pill").inner_text(), "not conformant")
        detail = page.locator("#check-NODE-INIT-01 .detail")
        self.assertIn("is initialised", detail.locator("pre.fail").inner_text())
        self.assertIn("node-init-01", detail.locator("details", has_text="objects.yaml").text_content())
        self.assertIn("taint", detail.locator(".demand").inner_text())
        # The time line can be walked through with the keyboard, and says what it is at.
        line = detail.locator("canvas")
        line.focus()
        page.keyboard.press("ArrowRight")
        first = detail.locator(".tip").inner_text()
        self.assertIn("·", first)
        page.keyboard.press("PageDown")
        self.assertNotEqual(detail.locator(".tip").inner_text(), first)
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        self.assertTrue(detail.locator(".tip").is_hidden())
        self.assertEqual(page.troubles, [])

    def test_checks_are_found_and_the_address_keeps_it(self):
        page = self.opened(self.out / "report.html")
        shown = lambda: page.locator(".check:visible").count()
        everything = shown()
        self.assertGreater(everything, 100)
        page.get_by_role("button", name="fail 2").click()
        self.assertEqual(shown(), 2)
        page.get_by_label("suite").select_option("taint-removal")
        self.assertEqual(shown(), 1)
        again = self.opened(self.out / "report.html", page.url.split("#")[1])
        self.assertEqual(again.locator(".check:visible").count(), 1)
        again.get_by_label("find in ids").fill("there is no such check")
        self.assertTrue(again.get_by_text("No check is like that.").is_visible())

    def test_it_fits_a_phone_and_is_readable_in_the_dark(self):
        phone = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
        page = self.opened(self.out / "report.html", "check=SVC-CREATE-02", **phone)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        self.assertEqual(ground, "rgb(13, 17, 23)")

    def test_hostile_texts_stay_texts(self):
        events = self.events()
        for line in events:
            event = line["event"]
            if event["type"] == "checks-planned":
                for check in event["checks"]:
                    check["title"] = HOSTILE
            for key in ("seen", "promise", "request", "text", "name"):
                if isinstance(event.get(key), str):
                    event[key] = HOSTILE
        page = self.opened(self.replayed(events, "hostile"), "check=NODE-INIT-01")
        self.assertEqual(page.locator("img").count() + page.locator("b").count(), 0)
        self.assertNotIn("broken out", page.title())
        self.assertIn("onerror", page.locator("#check-NODE-INIT-01 .title").inner_text())
        self.assertEqual(page.troubles, [])

    def test_a_cut_stream_says_so(self):
        events = self.events()
        page = self.opened(self.replayed(events[: len(events) // 2], "cut"))
        self.assertNotEqual(page.locator("h1 .pill").inner_text(), "conformant")
        self.assertEqual(page.troubles, [])

    def test_much_is_no_trouble(self):
        events = self.events()
        began = next(n for n, line in enumerate(events) if line["event"]["type"] == "check-began")
        call = {"type": "cloud-call", "by": "a", "operation": "lb.list", "took_ms": 1, "outcome": "200"}
        at = events[began]["at_ms"]
        more = [
            {"at_ms": at + n // 10, "lane": 0, "event": {**call, "seq": n, "request": f"GET /v1/load-balancers?owner={n}"}}
            for n in range(100_000)
        ]
        file = self.replayed(events[: began + 1] + more + events[began + 1 :], "much")
        self.assertLess(file.stat().st_size, 5_000_000)
        began = time.monotonic()
        page = self.opened(file, "check=NODE-INIT-01")
        print(f"100,000 events: {file.stat().st_size} bytes, there after {time.monotonic() - began:.1f} s")
        page.get_by_label("everything in this cluster").first.check()
        told = page.locator("#check-NODE-INIT-01 summary").all_inner_texts()
        self.assertTrue(any("100" in text for text in told), told)


if __name__ == "__main__":
    unittest.main()
