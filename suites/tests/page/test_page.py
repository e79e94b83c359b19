"""Pages in a real browser: report.html of a run in which checks failed and of one whose texts are hostile, two reports side by
side, and a run that is watched while it runs."""

import pathlib
import subprocess
import time
import unittest

from browser import PROGRAM, Browser, events, folder, full_run, replayed

HOSTILE = "</script><img src=x onerror=\"document.title='broken out'\"><b>bold</b>\u202e\x1b[31m"


def hostile():
    """The events of the run, with hostile texts wherever others write them."""
    lines = events()
    for line in lines:
        event = line["event"]
        if event["type"] == "checks-planned":
            for check in event["checks"]:
                check["title"] = HOSTILE
        for key in ("seen", "promise", "request", "text", "name"):
            if isinstance(event.get(key), str):
                event[key] = HOSTILE
    return lines


class Page(Browser):
    def watched(self, out, *only):
        """A run in progress, and the address of its page."""
        arguments = [*PROGRAM, "run", "--watch", "--cluster", "embedded", "--profile", "null", *only, "--out", str(out)]
        run = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)
        for line in run.stderr:
            if line.startswith("watch it at "):
                return run, line.split()[3]
        raise AssertionError("the run did not say where it can be watched")

    def stays_text(self, page):
        self.assertEqual(page.locator("img").count() + page.locator("b").count(), 0)
        self.assertNotIn("broken out", page.title())
        self.assertIn("onerror", page.locator("#check-NODE-INIT-01 .title").inner_text())
        self.assertEqual(page.troubles, [])

    def test_a_failed_check_tells_its_story(self):
        page = self.opened(self.out / "report.html", "check=NODE-INIT-01")
        self.assertEqual(page.locator("h1 .pill").inner_text(), "not conformant")
        detail = page.locator("#check-NODE-INIT-01 .detail")
        self.assertIn("a Node without the taint", detail.locator(".diff-line.wanted").inner_text())
        self.assertIn("uninitialized", detail.locator(".diff-line.got mark").first.inner_text())
        self.assertIn("is initialised", detail.locator(".said-promise").inner_text())
        command = detail.locator(".command code", has_text="ccm-conformance run").inner_text()
        self.assertEqual(command, "ccm-conformance run --cluster embedded --profile null --only NODE-INIT-01 --keep on-failure")
        self.assertIn("node-init-01", detail.locator("details", has_text="objects.yaml").text_content())
        self.assertIn("taint", detail.locator(".demand").inner_text())
        # The time line can be used with the keyboard, and announces the current position.
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
        self.assertEqual(shown(), 2, "failures are shown first, other suites are closed")
        page.get_by_role("button", name="Show the other").first.click()
        self.assertGreater(shown(), 20)
        page.get_by_role("button", name="fail 2", exact=True).click()
        self.assertEqual(shown(), 2)
        # The counts follow the other filters.
        page.get_by_label("suite").select_option("taint-removal")
        self.assertEqual(shown(), 1)
        self.assertTrue(page.get_by_role("button", name="fail 1", exact=True).is_visible())
        self.assertIn("1 of ", page.locator(".shown").inner_text())
        again = self.opened(self.out / "report.html", page.url.split("#")[1])
        self.assertEqual(again.locator(".check:visible").count(), 1)
        again.get_by_label("find in ids").fill("there is no such check")
        self.assertTrue(again.get_by_text("No check matches these filters.").is_visible())
        again.get_by_role("button", name="Clear filters").click()
        self.assertEqual(again.locator(".check:visible").count(), 2)
        self.assertTrue(again.get_by_role("button", name="Clear filters").is_hidden())

    def test_checks_are_sorted_and_presets_choose_them(self):
        page = self.opened(full_run())
        checks = page.locator(".shown").inner_text()
        page.get_by_role("button", name="Slowest").click()
        times = page.evaluate("[...document.querySelectorAll('.check .took')].map((node) => node.textContent)")
        self.assertRegex(times[0], r"^\d+ min")
        self.assertEqual(page.locator(".check").count(), 60, "the slowest of them")
        page.get_by_role("button", name="MUSTs not passed").click()
        levels = set(page.locator(".check .level").all_inner_texts())
        self.assertEqual(levels, {"MUST"})
        self.assertEqual(page.locator(".check .symbol.pass").count(), 0)
        page.get_by_role("button", name="All", exact=True).click()
        self.assertEqual(page.locator(".shown").inner_text(), checks)
        self.assertEqual(page.troubles, [])

    def test_the_reasons_say_what_happened_and_lead_to_the_checks(self):
        page = self.opened(self.out / "report.html")
        reason = page.locator(".reasons tbody tr", has_text="NODE-INIT-01")
        cells = reason.locator("td").all_inner_texts()
        self.assertIn("a Node without the taint", cells[1])
        self.assertIn("uninitialized", cells[2])
        reason.get_by_role("link").click()
        self.assertTrue(page.locator("#check-NODE-INIT-01 .detail").is_visible())
        self.assertIn("check=NODE-INIT-01", page.url)

    def test_it_fits_a_phone_and_is_readable_in_the_dark(self):
        phone = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
        page = self.opened(self.out / "report.html", "check=SVC-CREATE-02", **phone)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        self.assertEqual(ground, "rgb(13, 17, 23)")

    def test_hostile_texts_stay_texts(self):
        self.stays_text(self.opened(replayed(hostile(), "hostile"), "check=NODE-INIT-01"))

    def test_two_reports_are_next_to_each_other(self):
        # As if the later CCM met one of the requirements, but took longer.
        lines = events()
        for line in lines:
            if line.get("check") == "SVC-CREATE-02" and line["event"]["type"] == "check-ended":
                line["event"]["ended"] = {"outcome": "pass"}
        after = replayed(lines, "after").parent
        done, file = self.compared(self.out, after)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("SVC-CREATE-02: fail -> pass", done.stdout)
        page = self.opened(file)
        self.assertEqual(page.locator("h1 .pill").all_inner_texts(), ["not conformant", "not conformant"])
        self.assertEqual(page.locator(".check:visible .id").all_inner_texts(), ["SVC-CREATE-02"])
        failed = page.locator("header .pair .short").all_inner_texts()
        self.assertTrue("2 failed" in failed[0] and "1 failed" in failed[1], failed)
        page.locator(".check:visible .row").click()
        pair = page.locator("#check-SVC-CREATE-02 .pair > section")
        self.assertEqual(pair.count(), 2)
        self.assertEqual(pair.nth(0).locator(".diff").count(), 1)
        self.assertEqual(pair.nth(1).locator(".diff").count(), 0)
        self.assertEqual(pair.nth(1).locator("canvas").count(), 1)
        page.get_by_role("button", name="All", exact=True).click()
        page.locator(".group-head[data-group=same]").click()
        self.assertGreaterEqual(page.locator(".check:visible").count(), 60)
        self.assertLess(file.stat().st_size, 5_000_000)
        self.assertEqual(page.troubles, [])
        phone = self.opened(file, "check=SVC-CREATE-02", viewport={"width": 360, "height": 740})
        self.assertLessEqual(phone.evaluate("document.documentElement.scrollWidth"), 360)

    def test_a_comparison_of_hostile_reports_and_of_one_without_events(self):
        other = replayed(hostile(), "hostile-one").parent
        done, file = self.compared(self.out, other)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.stays_text(self.opened(file, "check=NODE-INIT-01"))
        (other / "events.jsonl").unlink()
        done, file = self.compared(self.out, other)
        self.assertIn("does not show what happened", done.stderr)
        page = self.opened(file, "check=NODE-INIT-01")
        self.assertEqual(page.locator("#check-NODE-INIT-01 canvas").count(), 1, "of the run whose events are there")
        self.stays_text(page)

    def test_a_run_is_watched_to_its_end(self):
        out = folder() / "watched"
        run, address = self.watched(out, "--only", "NODE-INIT-01", "--only", "SVC-CREATE-02", "--only", "NODE-INIT-15")
        page = self.at(address, "http://127.0.0.1:", "check=NODE-INIT-01")
        self.assertEqual(page.locator("h1 .pill").inner_text(), "under way")
        page.wait_for_selector("#check-NODE-INIT-01 .mark .running", timeout=60_000)
        page.wait_for_selector("#check-NODE-INIT-01 .verdict.fail", timeout=60_000)
        page.wait_for_selector("html[data-ended]", timeout=60_000)
        self.assertEqual(page.locator("h1 .pill").inner_text(), "not conformant")
        self.assertIn("report.html stays", page.locator("footer").inner_text())
        said = run.stderr.read()
        self.assertEqual(run.wait(), 1, said)
        self.assertRegex(said, r"watched: opened 1 times, \d+ answers for \d+ ms")
        # It shows the same as report.html, including the evidence of failures.
        kept = self.opened(out / "report.html", "check=NODE-INIT-01")
        for part in (".figures", "#why", "#profiles", ".check:visible", "#check-NODE-INIT-01 summary"):
            self.assertEqual(page.locator(part).all_inner_texts(), kept.locator(part).all_inner_texts(), part)
        self.assertEqual(page.troubles, [])

    def test_a_run_that_is_killed_is_missed(self):
        run, address = self.watched(folder() / "killed", "--only", "NODE-INIT-01")
        page = self.at(address, "http://127.0.0.1:")
        run.kill()
        page.wait_for_selector("html[data-ended]", timeout=30_000)
        self.assertIn("no longer answers", page.locator("footer").inner_text())

    def test_a_cut_stream_says_so(self):
        lines = events()
        page = self.opened(replayed(lines[: len(lines) // 2], "cut"))
        self.assertNotEqual(page.locator("h1 .pill").inner_text(), "conformant")
        self.assertEqual(page.troubles, [])

    def test_much_is_no_trouble(self):
        lines = events()
        began = next(n for n, line in enumerate(lines) if line["event"]["type"] == "check-began")
        at = lines[began]["at_ms"]

        # In the order in which a run writes the keys: a stream has one form.
        def call(n):
            who = {"type": "cloud-call", "seq": n, "by": "a", "operation": "lb.list"}
            return {**who, "request": f"GET /v1/load-balancers?owner={n}", "took_ms": 1, "outcome": "200"}

        more = [{"at_ms": at + n // 10, "lane": 0, "event": call(n)} for n in range(100_000)]
        file = replayed(lines[: began + 1] + more + lines[began + 1 :], "much")
        self.assertLess(file.stat().st_size, 5_000_000)
        began = time.monotonic()
        page = self.opened(file, "check=NODE-INIT-01")
        print(f"100,000 events: {file.stat().st_size} bytes, there after {time.monotonic() - began:.1f} s")
        page.get_by_label("everything in this cluster").first.check()
        texts = page.locator("#check-NODE-INIT-01 summary").all_inner_texts()
        self.assertTrue(any("100" in text for text in texts), texts)


if __name__ == "__main__":
    unittest.main()
