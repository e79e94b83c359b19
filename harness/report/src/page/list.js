// The list of checks: groups of rows that can be opened.

const shownChecks = new Map();
// The list of the page, for the parts that lead to it.
let checkList = null;
// How many rows of a group are shown before the others are asked for.
const ROWS_AT_ONCE = 60;
// Up to how many checks that a filter leaves, all groups are open.
const OPEN_AT_MOST = 120;

// A check in the list. `tell` returns what its row shows: {cells, words, suite, kinds, ...}; `open` what is in it.
class Row {
  constructor(id, tell, open) {
    Object.assign(this, { id, tell, open, detail: null });
    this.button = button("row", () => {
      this.toggle(!this.detail);
      state.set({ check: this.detail ? id : "" });
    }, { ariaExpanded: "false" });
    this.node = make("li", { className: "check", id: `check-${id}` }, this.button);
    shownChecks.set(id, this);
  }

  toggle(open) {
    if (Boolean(this.detail) === open) return;
    this.button.ariaExpanded = String(open);
    if (!open) this.detail.remove();
    this.detail = open ? this.open() : null;
    if (open) this.node.append(this.detail);
  }

  // Shows what has changed. An open check is drawn again with it, and while it runs, unless it is in use.
  refresh() {
    const { cells, ...traits } = this.tell();
    const now = JSON.stringify(traits);
    const isOther = now !== this.shown;
    if (isOther) {
      Object.assign(this, { shown: now, traits });
      this.button.replaceChildren(...cells());
    }
    if (!this.detail || !(isOther || (traits.kinds.outcome === "running" && !this.detail.matches(":hover, :focus-within")))) return;
    const fresh = this.open();
    this.detail.replaceWith(fresh);
    this.detail = fresh;
  }
}

function show(id) {
  const row = shownChecks.get(id);
  if (!row) return;
  state.set({ check: id });
  checkList.reveal(row);
  row.toggle(true);
  row.node.scrollIntoView({ block: "start" });
  row.button.focus({ preventScroll: true });
}

// Narrows the list down to some checks, and leads there.
function narrowTo(change) {
  checkList.filter.set({ ...checkList.filter.nothing(), ...change });
  document.getElementById("checks").scrollIntoView();
}

// The cells of a row.
const cells = ({ entry, outcomes, took, used }) => () => [
  span("mark", ...outcomes.flatMap((outcome, n) => [n ? "→" : "", symbol(outcome)])),
  span("id", entry.id), span("title", entry.title),
  make("span", { className: `level ${entry.level}`, title: LEVELS[entry.level] }, entry.private ? PRIVATE : entry.level),
  span("took", took),
  make("span", { className: used >= CLOSE ? "used close" : "used", title: LIMIT_USED }, used > 0 ? `${used} %` : ""),
];

// What the columns of the list are.
const listHead = () => make(
  "div", { className: "list-head", ariaHidden: "true" }, span("mark"), span("", "check"), span("", "requirement"), span("", "level"), span("took", "took"),
  make("span", { className: "used", title: LIMIT_USED }, "limit"),
);

// `groupOf`: the name of a row's group; `rank`: 0 for the rows that matter most, then 1 and so on, and -1 for the others; `noun`: what such a row is called.
class List {
  constructor(rows, { kinds, presets, groupOf, rank, counted, noun = "problem" }) {
    Object.assign(this, { rows, groupOf, rank, counted, noun, toggled: new Map(), whole: new Set(), pinned: null });
    rows.forEach((row) => row.refresh());
    const suites = [...new Set(rows.map((row) => row.traits.suite))];
    this.filter = new Filter(kinds, presets, suites, () => this.narrow());
    this.place = make("div", { className: "groups" });
    this.steps = span("steps", button("tool", () => this.step(-1), { title: `Previous ${noun} (p)`, ariaLabel: `previous ${noun}` }, "‹"), this.where = span("where"), button("tool", () => this.step(1), { title: `Next ${noun} (n)`, ariaLabel: `next ${noun}` }, "›"));
    this.all = button("tool", () => this.toggleAll(), { title: "Expand or collapse all groups (e)" });
    const line = make("div", { className: "list-line" }, this.filter.shown, this.filter.clear, span("spacer"), this.steps, this.all);
    this.node = section("checks", "Checks", this.filter.node, line, listHead(), this.place);
    checkList = this;
    this.refresh();
  }

  isTrouble(row) {
    return this.rank(row) >= 0;
  }

  refresh() {
    this.rows.forEach((row) => row.refresh());
    this.draw();
  }

  // The user has chosen other checks: what the address named need not stay.
  narrow() {
    this.pinned = null;
    this.toggled.clear();
    this.whole.clear();
    this.draw();
  }

  // Makes sure that a row is on the page.
  reveal(row) {
    this.pinned = row;
    this.draw();
  }

  // Groups of rows in the order of the page: [name, rows].
  groups() {
    const fits = this.filter.fits();
    const left = this.rows.filter((row) => row === this.pinned || fits(row));
    const { sort } = this.filter;
    if (sort !== "suite") {
      const by = { slow: (a, b) => b.traits.ms - a.traits.ms, limit: (a, b) => b.traits.used - a.traits.used, id: (a, b) => a.id.localeCompare(b.id, "en", { numeric: true }) }[sort];
      return [[ORDERS[sort] ?? "all", by ? left.sort(by) : left]];
    }
    const groups = new Map();
    for (const row of left) groups.set(this.groupOf(row), [...(groups.get(this.groupOf(row)) ?? []), row]);
    const weight = (row) => (this.isTrouble(row) ? this.rank(row) : Infinity);
    const order = (a, b) => (weight(a) === weight(b) ? 0 : weight(a) - weight(b));
    for (const rows of groups.values()) rows.sort(order);
    return [...groups].sort(([, a], [, b]) => order(a[0], b[0]));
  }

  isOpen(name, rows, groups) {
    if (this.pinned && rows.includes(this.pinned)) return true;
    if (this.toggled.has(name)) return this.toggled.get(name);
    if (groups.length === 1) return true;
    if (this.filter.isOn) return groups.reduce((sum, [, some]) => sum + some.length, 0) <= OPEN_AT_MOST;
    return this.isTrouble(rows[0]);
  }

  draw() {
    const groups = this.groups();
    this.shown = groups.flatMap(([, rows]) => rows);
    this.filter.refresh(this.rows, this.shown.length);
    const trouble = this.shown.filter((row) => this.isTrouble(row));
    this.steps.hidden = !trouble.length;
    const at = trouble.findIndex((row) => row.id === state.word("check"));
    this.where.textContent = `${at < 0 ? "" : `${at + 1} of `}${count(trouble.length, this.noun)}`;
    const open = groups.map(([name, rows]) => this.isOpen(name, rows, groups));
    this.all.textContent = open.some(Boolean) ? "Collapse" : "Expand";
    this.all.hidden = groups.length < 2;
    // What is as it was stays, with what is open in it and what has the focus.
    const now = JSON.stringify(groups.map(([name, rows], n) => [name, open[n], this.whole.has(name), rows.map((row) => [row.id, row.traits.kinds])])) + (this.pinned?.id ?? "");
    if (now === this.drawn) return;
    this.drawn = now;
    const focused = document.activeElement;
    this.place.replaceChildren(...groups.map(([name, rows], n) => this.group(name, rows, open[n])));
    if (!groups.length) this.place.append(make("p", { className: "empty" }, "No check matches these filters."));
    if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
  }

  group(name, rows, isOpen) {
    const counts = this.counted(rows);
    const took = rows.reduce((sum, row) => sum + row.traits.ms, 0);
    const head = button("group-head", () => {
      this.pinned = null;
      this.toggled.set(name, !isOpen);
      this.draw();
      [...this.place.querySelectorAll(".group-head")].find((one) => one.dataset.group === name)?.focus();
    }, { ariaExpanded: String(isOpen) },
    span("group-name", suiteName(name)), span("group-counts", ...passFirst(counts).map(([outcome, n]) => span(`group-count ${outcome}`, symbol(outcome), String(n)))),
    bar(passFirst(counts), inWords(counts)), span("took", took ? duration(took) : ""));
    head.dataset.group = name;
    return make("div", { className: "group" }, make("h3", {}, head), isOpen ? this.listed(name, rows) : null);
  }

  // The rows of an open group: those that matter first, and the others where they are asked for.
  listed(name, rows) {
    const trouble = rows.filter((row) => this.isTrouble(row)).length;
    const isChosen = this.filter.isOn || this.toggled.get(name) || this.whole.has(name);
    let most = isChosen || !trouble ? ROWS_AT_ONCE : trouble;
    if (this.whole.has(name)) most = rows.length;
    const shown = rows.filter((row, n) => n < most || row === this.pinned || row.detail);
    const more = rows.length - shown.length;
    const ask = more ? button("more-rows", () => {
      this.whole.add(name);
      this.draw();
    }, {}, `Show the other ${count(more, "check")}`) : null;
    return [make("ul", { className: "rows" }, shown.map((row) => row.node)), ask];
  }

  toggleAll() {
    const groups = this.groups();
    const isAnyOpen = groups.some(([name, rows]) => this.isOpen(name, rows, groups));
    this.pinned = null;
    for (const [name] of groups) this.toggled.set(name, !isAnyOpen);
    this.draw();
  }

  // Opens the next problem, or the one before.
  step(by) {
    const trouble = this.shown.filter((row) => this.isTrouble(row));
    if (!trouble.length) return;
    const at = trouble.findIndex((row) => row.id === state.word("check"));
    const next = at < 0 && by < 0 ? trouble.length - 1 : (at + by + trouble.length) % trouble.length;
    trouble[at]?.toggle(false);
    show(trouble[next].id);
    this.draw();
  }

  // Shows all rows for printing, and puts it back.
  print(isPrinted) {
    if (isPrinted) this.before = [this.toggled, this.whole];
    const names = this.groups().map(([name]) => name);
    [this.toggled, this.whole] = isPrinted ? [new Map(names.map((name) => [name, true])), new Set(names)] : this.before;
    this.draw();
  }
}

window.addEventListener("beforeprint", () => checkList?.print(true));
window.addEventListener("afterprint", () => checkList?.print(false));
