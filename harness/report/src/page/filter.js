// The tools over the list of checks: a search, filters with counts that follow it, presets, and the order.

const ORDERS = { suite: "by suite", slow: "slowest first", limit: "most of the limit used first", id: "by id" };
const CLOSE = 80;

// A button of a filter, and how many checks it would show.
class Chip {
  constructor(kind, word, changed) {
    Object.assign(this, { kind, word });
    this.number = span("number");
    this.button = button("chip", () => {
      const now = new Set(state.words(kind));
      now.has(word) ? now.delete(word) : now.add(word);
      state.set({ [kind]: [...now].join(",") });
      changed();
    }, { title: MEANINGS[word] ?? LEVELS[word] }, word in MEANINGS ? symbol(word, "") : null, spaced(word), " ", this.number);
  }

  refresh(n) {
    const isOn = state.words(this.kind).includes(this.word);
    this.number.textContent = String(n);
    this.button.ariaPressed = String(isOn);
    this.button.disabled = !n && !isOn;
  }
}

// `kinds`: the words of each kind of filter, by kind. `presets`: [name, what it sets in the address].
class Filter {
  constructor(kinds, presets, suites, changed) {
    Object.assign(this, { kinds, changed });
    this.keys = ["find", "suite", "used", ...Object.keys(kinds)];
    this.search = make("input", { type: "search", placeholder: "Find in ids, titles and reasons", ariaLabel: "find in ids, titles and reasons" });
    this.search.addEventListener("input", () => this.set({ find: this.search.value.trim() }));
    const choice = (key, label, options) => {
      const node = make("select", { ariaLabel: label }, options.map(([value, text]) => make("option", { value }, text)));
      node.addEventListener("change", () => this.set({ [key]: node.value }));
      return node;
    };
    this.suite = choice("suite", "suite", [["", "all suites"], ...suites.map((name) => [name, name])]);
    this.order = choice("sort", "order", Object.entries(ORDERS).map(([key, text]) => [key === "suite" ? "" : key, text]));
    this.chips = Object.entries(kinds).map(([kind, words]) => [kind, words.map((word) => new Chip(kind, word, changed))]);
    this.presets = presets.map(([name, sets]) => [sets, button("preset", () => this.set({ ...this.nothing(), sort: "", ...sets }), {}, name)]);
    this.clear = button("clear", () => this.set({ ...this.nothing(), sort: "" }), { title: "Show all checks (Escape)" }, "Clear filters");
    this.shown = make("span", { className: "shown", role: "status" });
    this.node = make(
      "div", { className: "filter", role: "search", ariaLabel: "checks" },
      make("div", { className: "filter-row", role: "group", ariaLabel: "presets" }, this.presets.map(([, node]) => node)),
      make("div", { className: "filter-row" }, this.search, this.suite, this.order),
      make("div", { className: "filter-row" }, this.chips.map(([kind, chips]) => make("span", { className: "chips", role: "group", ariaLabel: kind }, chips.map((chip) => chip.button)))),
    );
  }

  // What the address says when nothing is filtered.
  nothing() {
    return Object.fromEntries(this.keys.map((key) => [key, ""]));
  }

  set(change) {
    state.set(change);
    this.changed();
  }

  get isOn() {
    return this.keys.some((key) => state.word(key));
  }

  get sort() {
    return state.word("sort") || "suite";
  }

  // A function that says whether a row fits; `but` is a kind of filter that is left out of account.
  fits(but) {
    const find = state.word("find").toLowerCase();
    const [suite, used] = [state.word("suite"), Number(state.word("used"))];
    const kinds = Object.keys(this.kinds).filter((kind) => kind !== but).map((kind) => [kind, state.words(kind)]);
    return ({ traits }) => kinds.every(([kind, words]) => !words.length || words.includes(traits.kinds[kind]))
      && (!suite || traits.suite === suite) && traits.words.includes(find) && (!used || traits.used >= used);
  }

  refresh(rows, shown) {
    for (const [kind, chips] of this.chips) {
      const left = rows.filter(this.fits(kind));
      for (const chip of chips) {
        chip.button.hidden = !rows.some((row) => row.traits.kinds[kind] === chip.word);
        chip.refresh(left.filter((row) => row.traits.kinds[kind] === chip.word).length);
      }
    }
    for (const [sets, node] of this.presets) {
      const wanted = { ...this.nothing(), sort: "", ...sets };
      node.ariaPressed = String(Object.entries(wanted).every(([key, value]) => state.word(key) === value));
    }
    if (this.search !== document.activeElement) this.search.value = state.word("find");
    [this.suite.value, this.order.value] = [state.word("suite"), state.word("sort")];
    this.clear.hidden = !this.isOn && !state.word("sort");
    this.shown.textContent = this.isOn ? `${shown} of ${rows.length} checks` : count(rows.length, "check");
  }
}
