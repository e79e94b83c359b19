"""Screenshots of the pages, at two widths and in both themes, to be looked at. SCREENSHOTS is the folder that they go to."""

import os
import pathlib
import unittest

from browser import Browser, folder, full_run

WIDTHS = {1280: 1400, 400: 1600}


class Looks(Browser):
    def test_pages_are_shown_at_two_widths_in_both_themes(self):
        place = pathlib.Path(os.environ.get("SCREENSHOTS") or folder() / "screenshots")
        place.mkdir(parents=True, exist_ok=True)
        _, comparison = self.compared(self.out, full_run().parent)
        pages = {
            "report": (full_run(), ""), "failure": (self.out / "report.html", "check=NODE-INIT-01"),
            "slowest": (full_run(), "sort=slow"), "comparison": (comparison, ""),
        }
        for name, (file, fragment) in pages.items():
            for width, height in WIDTHS.items():
                for theme in ("light", "dark"):
                    page = self.opened(file, fragment, viewport={"width": width, "height": height}, color_scheme=theme)
                    page.wait_for_timeout(200)
                    page.screenshot(path=place / f"{name}-{width}-{theme}.png")
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width, name)
                    self.assertEqual(page.troubles, [], name)
                    page.close()
        print(f"screenshots: {place}")


if __name__ == "__main__":
    unittest.main()
