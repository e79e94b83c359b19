"""Pages in a real browser: report.html of a run in which checks failed and of one whose texts are hostile, two reports beside
each other, and a run that is watched while it goes.

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

    def watched(self, out, *only):
        """A run that goes on, and the address of its page."""
        arguments = [*PROGRAM, "run", "--watch", "--cluster", "embedded", "--profile", "null", *only, "--out", str(out)]
        run = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)
        for line in run.stderr:
            if line.startswith("watch it at "):
                return run, line.split()[3]
        raise AssertionError("the run did not say where it can be watched")

    def compared(self, before, after, *options):
        page = pathlib.Path(self.folder.name, "compare.html")
        done = ccm_conformance("compare", *options, "--html", str(page), str(before / "report.yaml"), str(after / "report.yaml"))
        return done, page

    def hostile(self):
        """The events of the run, with hostile texts wherever others write them."""
        events = self.events()
        for line in events:
            event = line["event"]
            if event["type"] == "checks-planned":
                for check in event["checks"]:
                    check["title"] = HOSTILE
            for key in ("seen", "promise", "request", "text", "name"):
                if isinstance(event.get(key), str):
                    event[key] = HOSTILE
        return events

    def stays_text(self, page):
        self.assertEqual(page.locator("img").count() + page.locator("b").count(), 0)
        self.assertNotIn("broken out", page.title())
        self.assertIn("onerror", page.locator("#check-NODE-INIT-01 .title").inner_text())
        self.assertEqual(page.troubles, [])

    def replayed(self, lines, name):
        folder = pathlib.Path(self.folder.name, name)
        folder.mkdir()
        # A stream has one form: no blanks, and letters as they are.
        form = {"separators": (",", ":"), "ensure_ascii": False}
        (folder / "events.jsonl").write_text("".join(f"{json.dumps(line, **form)}\n" for line in lines))
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
        self.stays_text(self.opened(self.replayed(self.hostile(), "hostile"), "check=NODE-INIT-01"))

    def test_two_reports_stand_beside_each_other(self):
        # As if the later CCM kept one of the promises and took longer for it.
        events = self.events()
        for line in events:
            if line.get("check") == "SVC-CREATE-02" and line["event"]["type"] == "check-ended":
                line["event"]["ended"] = {"outcome": "pass"}
        after = self.replayed(events, "after").parent
        done, file = self.compared(self.out, after)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("SVC-CREATE-02: fail -> pass", done.stdout)
        page = self.opened(file)
        self.assertEqual(page.locator("h1 .pill").all_inner_texts(), ["not conformant", "not conformant"])
        self.assertEqual(page.locator(".check:visible .id").all_inner_texts(), ["SVC-CREATE-02"])
        self.assertIn("1 → 0", page.locator("table").first.inner_text().replace("2 → 1", "1 → 0"))
        page.locator(".check:visible .row").click()
        pair = page.locator("#check-SVC-CREATE-02 .pair > section")
        self.assertEqual(pair.count(), 2)
        self.assertEqual(pair.nth(0).locator("pre.fail").count(), 1)
        self.assertEqual(pair.nth(1).locator("pre.fail").count(), 0)
        self.assertEqual(pair.nth(1).locator("canvas").count(), 1)
        page.get_by_role("button", name="better 1").click()
        page.get_by_role("button", name="otherwise").click()
        page.get_by_role("button", name="worse").click()
        self.assertGreater(page.locator(".check:visible").count(), 100)
        self.assertLess(file.stat().st_size, 5_000_000)
        self.assertEqual(page.troubles, [])
        phone = self.opened(file, "check=SVC-CREATE-02", viewport={"width": 360, "height": 740})
        self.assertLessEqual(phone.evaluate("document.documentElement.scrollWidth"), 360)

    def test_a_comparison_of_hostile_reports_and_of_one_without_events(self):
        hostile = self.replayed(self.hostile(), "hostile-one").parent
        done, file = self.compared(self.out, hostile)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.stays_text(self.opened(file, "check=NODE-INIT-01"))
        (hostile / "events.jsonl").unlink()
        done, file = self.compared(self.out, hostile)
        self.assertIn("does not tell what happened", done.stderr)
        page = self.opened(file, "check=NODE-INIT-01")
        self.assertEqual(page.locator("#check-NODE-INIT-01 canvas").count(), 1, "of the run whose events are there")
        self.stays_text(page)

    def test_a_run_is_watched_to_its_end(self):
        out = pathlib.Path(self.folder.name, "watched")
        run, address = self.watched(out, "--only", "NODE-INIT-01", "--only", "SVC-CREATE-02", "--only", "NODE-INIT-15")
        page = self.at(address, "http://127.0.0.1:", "check=NODE-INIT-01")
        self.assertEqual(page.locator("h1 .pill").inner_text(), "under way")
        page.wait_for_selector("#check-NODE-INIT-01 .mark .running", timeout=60_000)
        page.wait_for_selector("#check-NODE-INIT-01 pre.fail", timeout=60_000)
        page.wait_for_selector("html[data-ended]", timeout=60_000)
        self.assertEqual(page.locator("h1 .pill").inner_text(), "not conformant")
        self.assertIn("report.html stays", page.locator("footer").inner_text())
        said = run.stderr.read()
        self.assertEqual(run.wait(), 1, said)
        self.assertRegex(said, r"watched: opened 1 times, \d+ answers for \d+ ms")
        # It shows what report.html shows, the evidence of what failed among it.
        kept = self.opened(out / "report.html", "check=NODE-INIT-01")
        for part in ("table", ".why", ".check:visible", "#check-NODE-INIT-01 summary"):
            self.assertEqual(page.locator(part).all_inner_texts(), kept.locator(part).all_inner_texts(), part)
        self.assertEqual(page.troubles, [])

    def test_a_run_that_is_killed_is_missed(self):
        run, address = self.watched(pathlib.Path(self.folder.name, "killed"), "--only", "NODE-INIT-01")
        page = self.at(address, "http://127.0.0.1:")
        run.kill()
        page.wait_for_selector("html[data-ended]", timeout=30_000)
        self.assertIn("no longer answers", page.locator("footer").inner_text())

    def test_a_cut_stream_says_so(self):
        events = self.events()
        page = self.opened(self.replayed(events[: len(events) // 2], "cut"))
        self.assertNotEqual(page.locator("h1 .pill").inner_text(), "conformant")
        self.assertEqual(page.troubles, [])

    def test_much_is_no_trouble(self):
        events = self.events()
        began = next(n for n, line in enumerate(events) if line["event"]["type"] == "check-began")
        at = events[began]["at_ms"]

        # In the order in which a run writes them: a stream has one form.
        def call(n):
            who = {"type": "cloud-call", "seq": n, "by": "a", "operation": "lb.list"}
            return {**who, "request": f"GET /v1/load-balancers?owner={n}", "took_ms": 1, "outcome": "200"}

        more = [{"at_ms": at + n // 10, "lane": 0, "event": call(n)} for n in range(100_000)]
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
