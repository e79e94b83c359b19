// The list of checks: rows to open, to search and to narrow down.

const shownChecks = new Map();

// A check in the list. `tell` says what its line shows: {cells, words, suite, kinds}; `open` what is in it.
class Row {
  constructor(id, tell, open) {
    Object.assign(this, { id, tell, open, detail: null });
    this.button = make("button", { className: "row", type: "button", ariaExpanded: "false" });
    this.node = make("div", { className: "check", id: `check-${id}` }, this.button);
    this.button.addEventListener("click", () => {
      this.toggle(!this.detail);
      state.set({ check: this.detail ? id : "" });
    });
    shownChecks.set(id, this);
  }

  toggle(open) {
    if (Boolean(this.detail) === open) return;
    this.button.ariaExpanded = String(open);
    if (!open) this.detail.remove();
    this.detail = open ? this.open() : null;
    if (open) this.node.append(this.detail);
  }

  // Shows what has become other. What is open is drawn anew with it, and while its check runs, unless somebody is at it.
  refresh() {
    const { cells, ...told } = this.tell();
    const now = JSON.stringify(told);
    const other = now !== this.shown;
    if (other) {
      Object.assign(this, { shown: now, told });
      this.button.replaceChildren(...cells());
    }
    if (!this.detail || !(other || (told.kinds.outcome === "running" && !this.detail.matches(":hover, :focus-within")))) return;
    const fresh = this.open();
    this.detail.replaceWith(fresh);
    this.detail = fresh;
  }
}

function show(id) {
  const row = shownChecks.get(id);
  if (!row) return;
  row.node.hidden = false;
  row.isPinned = true;
  row.toggle(true);
  state.set({ check: id });
  row.node.scrollIntoView({ block: "start" });
}

// The cells of a line; `took` is what stands at its end.
const cells = ({ entry, outcomes, took }) => () => [
  make("span", { className: "mark" }, ...outcomes.flatMap((outcome, n) => [
    n ? "→" : "",
    make("span", { className: outcome, title: outcome, ariaLabel: outcome, role: "img" }, GLYPHS[outcome] ?? "–"),
  ])),
  make("span", { className: "id" }, entry.id),
  make("span", { className: "title" }, entry.title),
  make("span", { className: "took" }, took),
];

// `chips`: the words of each kind, by kind.
class List {
  constructor(rows, chips) {
    this.rows = rows;
    this.nothing = make("p", { className: "empty", hidden: true }, "No check is like that.");
    this.search = make("input", { type: "search", placeholder: "find", ariaLabel: "find in ids, titles and reasons", value: state.get().get("find") ?? "" });
    rows.forEach((row) => row.refresh());
    const suites = [...new Set(rows.map((row) => row.told.suite))];
    this.suite = make("select", { ariaLabel: "suite" }, make("option", { value: "" }, "every suite"), ...suites.map((name) => make("option", { value: name }, name)));
    this.suite.value = state.get().get("suite") ?? "";
    this.chips = Object.entries(chips).flatMap(([kind, words]) => words.map((word) => this.chip(kind, word)));
    this.search.addEventListener("input", () => this.narrow());
    this.suite.addEventListener("change", () => this.narrow());
    const bar = make("div", { className: "bar", role: "search" }, this.search, this.suite, ...this.chips.map(({ button }) => button));
    this.node = make("section", {}, make("h2", {}, "Checks"), bar, make("div", {}, ...rows.map((row) => row.node)), this.nothing);
    this.refresh();
  }

  pressed(kind) {
    return (state.get().get(kind) ?? "").split(",").filter(Boolean);
  }

  chip(kind, word) {
    const button = make("button", { className: "chip", type: "button", ariaPressed: String(this.pressed(kind).includes(word)) });
    button.addEventListener("click", () => {
      const now = new Set(this.pressed(kind));
      now.has(word) ? now.delete(word) : now.add(word);
      button.ariaPressed = String(now.has(word));
      state.set({ [kind]: [...now].join(",") });
      this.narrow();
    });
    return { kind, word, button };
  }

  refresh() {
    this.rows.forEach((row) => row.refresh());
    for (const { kind, word, button } of this.chips) {
      const n = this.rows.filter((row) => row.told.kinds[kind] === word).length;
      button.textContent = `${word} ${n}`;
      button.hidden = !n && button.ariaPressed !== "true";
    }
    this.filter();
  }

  // Somebody wants to see other checks: what an address named need not stay.
  narrow() {
    for (const row of this.rows) row.isPinned = false;
    this.filter();
  }

  filter() {
    const wanted = this.search.value.trim().toLowerCase();
    const kinds = [...new Set(this.chips.map(({ kind }) => kind))].map((kind) => [kind, this.pressed(kind)]);
    state.set({ find: this.search.value.trim(), suite: this.suite.value });
    let left = 0;
    for (const { node, told, isPinned } of this.rows) {
      const fits = isPinned || (kinds.every(([kind, words]) => !words.length || words.includes(told.kinds[kind]))
        && (!this.suite.value || told.suite === this.suite.value) && told.words.includes(wanted));
      node.hidden = !fits;
      left += fits ? 1 : 0;
    }
    this.nothing.hidden = left > 0;
  }
}
