// The keys of the page, and the window that explains them and the symbols.

const KEYS = [
  ["n", "open the next problem, or change", () => checkList.step(1)],
  ["p", "open the previous problem, or change", () => checkList.step(-1)],
  ["/", "go to the search", () => checkList.filter.search.focus()],
  ["e", "expand or collapse all suites", () => checkList.toggleAll()],
  ["Escape", "clear the filters", () => checkList.filter.set({ ...checkList.filter.nothing(), sort: "" })],
  ["?", "show this window", () => openHelp()],
];

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input[type=search], select, textarea, canvas");
  if (event.ctrlKey || event.metaKey || event.altKey || !checkList || document.querySelector("dialog[open]")) return;
  const leaves = isTyping && event.key === "Escape" && event.target.matches("input");
  if (leaves) event.target.blur();
  const known = KEYS.find(([key]) => key === event.key);
  if (!known || (isTyping && !leaves)) return;
  event.preventDefault();
  known[2]();
});

function helpWindow() {
  const meanings = (all) => Object.entries(all).map(([word, text]) => make("tr", {}, make("th", { scope: "row" }, span(word in SYMBOLS ? `state ${word}` : "state", word in SYMBOLS ? symbol(word, "") : null, spaced(word))), cell(text)));
  const keys = KEYS.map(([key, text]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key)), cell(text)));
  const close = button("tool", () => node.close(), {}, "Close");
  const node = make(
    "dialog", { ariaLabel: "Legend and keys" }, make("div", { className: "dialog-head" }, make("h2", {}, "Legend and keys"), close),
    table(["outcome", "meaning"], meanings({ ...OUTCOMES, ...UNENDED })),
    table(["level", "meaning"], meanings({ ...LEVELS, "limit used": LIMIT_USED })),
    table(["key", "what it does"], keys),
  );
  // A click outside the window closes it.
  node.addEventListener("click", (event) => event.target === node && node.close());
  return node;
}

function openHelp() {
  const node = document.querySelector("dialog") ?? helpWindow();
  document.body.append(node);
  node.showModal();
}
