"""Whether everybody can use the page: with a keyboard, with a screen reader, in both themes, on paper and on a phone."""

import unittest

from browser import PHONE, Browser, full_run

# Finds texts whose contrast with their background is below the 4.5 that WCAG 2 requires at level AA. Colours
# are read from a canvas, which understands every notation that a browser uses.
FAINT_TEXTS = """() => {
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const rgba = (text) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = text;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((one, n) => one * a + under[n] * (1 - a)).concat(1);
  const ground = (node) => {
    const above = node.parentElement ? ground(node.parentElement) : [255, 255, 255, 1];
    return over(rgba(getComputedStyle(node).backgroundColor), above);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((one) => one / 255).map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || node.closest("script, style, noscript, :disabled") || !node.checkVisibility()) continue;
    const behind = ground(node);
    const [a, b] = [light(over(rgba(getComputedStyle(node).color), behind)), light(behind)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(`${contrast.toFixed(2)} ${node.className}: ${texts.currentNode.data.slice(0, 40)}`);
  }
  return [...new Set(faint)];
}"""

# Finds elements without a name for screen readers, and headings out of order.
NAMELESS = """() => {
  const wrong = [];
  const named = (node) => node.ariaLabel || node.textContent.trim() || node.labels?.length;
  for (const node of document.querySelectorAll("button, a, input, select, summary, canvas, nav, dialog, [role=img], [role=group]")) {
    if (!named(node)) wrong.push(`no name: ${node.outerHTML.slice(0, 120)}`);
  }
  let level = 0;
  for (const node of document.querySelectorAll("h1, h2, h3, h4, h5")) {
    if (!node.checkVisibility()) continue;
    const now = Number(node.tagName[1]);
    if (now > level + 1) wrong.push(`h${level} is followed by h${now}: ${node.textContent}`);
    level = now;
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of ids.filter((id, n) => ids.indexOf(id) !== n)) wrong.push(`id twice: ${id}`);
  for (const tag of ["h1", "main", "header", "footer"]) {
    const n = document.querySelectorAll(tag).length;
    if (n !== 1) wrong.push(`${n} of ${tag}`);
  }
  for (const node of document.querySelectorAll("th:not([scope])")) wrong.push(`no scope: ${node.textContent}`);
  for (const node of document.querySelectorAll("svg:not([aria-hidden], [aria-label])")) wrong.push("a symbol without a name");
  for (const node of document.querySelectorAll("[aria-labelledby]")) {
    if (!document.getElementById(node.getAttribute("aria-labelledby"))) wrong.push(`no label for ${node.id}`);
  }
  return wrong;
}"""


class Access(Browser):
    def test_texts_can_be_read_in_both_themes(self):
        for scheme in ("light", "dark"):
            for size in ({}, PHONE):
                page = self.opened(self.out / "report.html", "check=NODE-INIT-01", color_scheme=scheme, **size)
                for summary in page.locator(".detail summary, #settings summary").all():
                    summary.click()
                self.assertEqual(page.evaluate(FAINT_TEXTS), [], f"{scheme} {size}")
                page.keyboard.press("?")
                self.assertEqual(page.evaluate(FAINT_TEXTS), [], f"{scheme} {size}, the legend")

    def test_everything_has_a_name_and_a_role(self):
        for page in (self.opened(self.out / "report.html", "check=NODE-INIT-01"), self.opened(full_run())):
            page.keyboard.press("e")
            self.assertEqual(page.evaluate(NAMELESS), [])
            page.keyboard.press("?")
            self.assertEqual(page.evaluate(NAMELESS), [])

    def test_a_keyboard_is_enough(self):
        page = self.opened(self.out / "report.html")
        focused = lambda: page.evaluate("document.activeElement.closest('.check')?.id ?? document.activeElement.type")
        page.keyboard.press("n")
        self.assertEqual(focused(), "check-NODE-INIT-01")
        self.assertTrue(page.locator("#check-NODE-INIT-01 .detail").is_visible())
        page.keyboard.press("n")
        self.assertEqual(focused(), "check-SVC-CREATE-02")
        self.assertEqual(page.locator(".detail").count(), 1, "the one before is closed")
        page.keyboard.press("p")
        self.assertEqual(focused(), "check-NODE-INIT-01")
        page.keyboard.press("Enter")
        self.assertEqual(page.locator(".detail").count(), 0)
        page.keyboard.press("/")
        self.assertEqual(focused(), "search")
        page.keyboard.type("SVC-CREATE-02")
        self.assertIn("find=SVC-CREATE-02", page.url)
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        self.assertNotIn("find", page.url)
        page.keyboard.press("?")
        self.assertTrue(page.get_by_role("dialog", name="Legend and keys").is_visible())
        page.keyboard.press("Escape")
        self.assertEqual(page.get_by_role("dialog").count(), 0)
        # The first press of Tab skips the head of the page.
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        self.assertEqual(focused(), "search")
        self.assertEqual(page.troubles, [])

    def test_the_theme_can_be_switched(self):
        page = self.opened(self.out / "report.html", color_scheme="dark")
        ground = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")
        before = ground()
        switch = page.get_by_role("button", name="Theme: system")
        switch.click()
        self.assertEqual(ground(), "rgb(255, 255, 255)")
        page.get_by_role("button", name="Theme: light").click()
        self.assertEqual(ground(), before)
        page.get_by_role("button", name="Theme: dark").click()
        self.assertTrue(page.get_by_role("button", name="Theme: system").is_visible())

    def test_commands_can_be_copied(self):
        page = self.opened(self.out / "report.html", "check=NODE-INIT-01", permissions=["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy the command").first.click()
        page.get_by_text("Copied").wait_for()
        self.assertIn("ccm-conformance run", page.evaluate("navigator.clipboard.readText()"))

    def test_all_checks_are_on_paper(self):
        page = self.opened(full_run(), color_scheme="dark")
        checks = int(page.locator(".shown").inner_text().split()[0])
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(page.locator(".check").count(), checks)
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.assertTrue(page.locator(".filter").is_hidden())
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertLess(page.locator(".check").count(), 100)

    def test_many_checks_are_a_short_page(self):
        for size, most in (({"viewport": {"width": 1280, "height": 900}}, 6_000), (PHONE, 9_000)):
            page = self.opened(full_run(), **size)
            self.assertLess(page.evaluate("document.documentElement.scrollHeight"), most)
            self.assertLess(page.evaluate("document.querySelectorAll('*').length"), 4_000)
            width = size["viewport"]["width"]
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
            page.keyboard.press("e")
            page.keyboard.press("e")
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
            self.assertEqual(page.troubles, [])


if __name__ == "__main__":
    unittest.main()
