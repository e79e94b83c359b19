// The parts that pages are made of: every text of a run is put in as text, never as markup.

function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name in node) node[name] = value;
    else node.setAttribute(name.replaceAll(/[A-Z]/g, (c) => `-${c.toLowerCase()}`), value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const span = (className, ...inside) => make("span", { className }, ...inside);
const button = (className, press, props, ...inside) => make("button", { className, type: "button", onclick: press, ...props }, ...inside);
const folded = (title, ...inside) => make("details", {}, make("summary", {}, title), ...inside);
const section = (id, title, ...inside) => make("section", { id, ariaLabelledby: `${id}-title` }, make("h2", { id: `${id}-title` }, title), ...inside);
const cell = (text, props = {}) => make("td", props, text);

// A text in which what stands between backticks is code.
const withCode = (text) => text.split("`").map((part, n) => (n % 2 ? make("code", {}, part) : part));

// A table. On a narrow page each row becomes a block, with the head of each cell before it.
function table(heads, rows, className = "") {
  const head = make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)));
  for (const row of rows) [...row.cells].forEach((one, n) => { one.dataset.head ??= heads[n] ?? ""; });
  return make("table", { className }, make("thead", {}, head), make("tbody", {}, rows));
}

// What the page shows at the moment is in its address, so that a link to it can be sent.
const state = {
  get: () => new URLSearchParams(location.hash.slice(1)),
  word: (key) => state.get().get(key) ?? "",
  words: (key) => state.word(key).split(",").filter(Boolean),
  set(change) {
    const now = state.get();
    for (const [key, value] of Object.entries(change)) value ? now.set(key, value) : now.delete(key);
    history.replaceState(null, "", `#${now}`);
  },
};

// A part of the page that is drawn again when what it shows has changed; `of` returns what it shows.
class Part {
  constructor(of, draw) {
    Object.assign(this, { of, draw, node: make("div") });
  }

  refresh() {
    const now = JSON.stringify(this.of());
    if (now === this.shown) return;
    this.shown = now;
    this.node.replaceChildren(...[this.draw()].flat().filter(Boolean));
  }
}

// Puts a text into the clipboard; where a browser does not give it to files, by way of a selection.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { value: text, className: "off-screen" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// A text for the shell, with a button that copies it.
function command(text, label = "Copy the command") {
  const press = async () => {
    node.textContent = (await copy(text)) ? "Copied" : "Select it and copy it by hand";
    setTimeout(() => (node.textContent = "Copy"), 2000);
  };
  const node = button("copy", press, { ariaLabel: label, ariaLive: "polite" }, "Copy");
  return make("div", { className: "command" }, make("code", {}, text), node);
}

// A bar whose parts are as long as their numbers: [[outcome, number]].
function bar(parts, label) {
  const shown = parts.filter(([, n]) => n).map(([outcome, n]) => {
    const part = make("span", { className: `part ${outcome}`, title: `${n} ${spaced(outcome)}` });
    part.style.flexGrow = n;
    return part;
  });
  return make("span", { className: "stack", role: "img", ariaLabel: label }, shown);
}

// The theme: as the system has it, or one that was chosen, which the browser remembers where it may.
const THEMES = ["system", "light", "dark"];
const theme = {
  now: () => document.documentElement.dataset.theme ?? "system",
  set(name) {
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    for (const node of document.querySelectorAll(".line")) node.line?.draw();
  },
  button() {
    const text = () => `Theme: ${theme.now()}`;
    const press = () => {
      theme.set(THEMES[(THEMES.indexOf(theme.now()) + 1) % THEMES.length]);
      node.textContent = text();
      try {
        localStorage.setItem("theme", theme.now());
      } catch { /* The browser keeps nothing for files. */ }
    };
    const node = button("tool", press, { title: "Switch between the theme of the system, light and dark" }, text());
    return node;
  },
};
try {
  if (THEMES.includes(localStorage.getItem("theme"))) theme.set(localStorage.getItem("theme"));
} catch { /* The browser keeps nothing for files. */ }
