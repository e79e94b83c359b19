"""Screenshots of the pages, at two widths and in both themes, to be looked at. SCREENSHOTS is the folder that they go to."""

import os
import pathlib
import unittest

from browser import Browser, folder, full_run

HEIGHTS = {1280: 1400, 400: 1600}
# The picture in the documentation, docs/report-page.png, is a copy of report-page.png.
DOCUMENTATION = {"width": 1280, "height": 760}


class Looks(Browser):
    def setUp(self):
        self.place = pathlib.Path(os.environ.get("SCREENSHOTS") or folder() / "screenshots")
        self.place.mkdir(parents=True, exist_ok=True)

    def shot(self, name, file, fragment="", top=None, **context):
        """A picture of a page, from the element with an id on."""
        page = self.opened(file, fragment, **context)
        if top:
            page.evaluate("id => document.getElementById(id).scrollIntoView()", top)
        page.wait_for_timeout(200)
        page.screenshot(path=self.place / f"{name}.png")
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), context["viewport"]["width"], name)
        self.assertEqual(page.troubles, [], name)
        page.close()

    def test_pages_are_shown_at_two_widths_in_both_themes(self):
        _, comparison = self.compared(self.out, full_run().parent)
        pages = {
            "report": (full_run(), ""), "checks": (full_run(), "", "checks"), "slowest": (full_run(), "sort=slow", "checks"),
            "failure": (self.out / "report.html", "check=NODE-INIT-01"), "comparison": (comparison, ""),
        }
        for name, page in pages.items():
            for width, height in HEIGHTS.items():
                for theme in ("light", "dark"):
                    size = {"width": width, "height": height}
                    self.shot(f"{name}-{width}-{theme}", *page, viewport=size, color_scheme=theme)
        self.shot("report-page", full_run(), viewport=DOCUMENTATION, color_scheme="light")
        print(f"screenshots: {self.place}")


if __name__ == "__main__":
    unittest.main()
