// The page of two runs beside each other.

const CHANGES = ["worse", "better", "otherwise", "same"];
const BROKEN = ["fail", "blocked", "error"];

// How a check ended in each of two runs; null where a run did not know it.
const pairOf = (runs, id) => runs.map((run) => (run.listed.has(id) ? outcomeOf(run.check(id).entry) : null));

function changeOf([before, after], differs) {
  if (!differs) return "same";
  if (BROKEN.includes(after) && !BROKEN.includes(before)) return "worse";
  return BROKEN.includes(before) && after === "pass" ? "better" : "otherwise";
}

const SIDES = ["before", "after"];

function compareRow(runs, id, change) {
  const known = runs.filter((run) => run.listed.has(id));
  const { entry } = known.at(-1).check(id);
  const outcomes = pairOf(runs, id).map((outcome) => outcome ?? "unknown");
  const took = known.map((run) => seconds(run.check(id).entry.duration_ms)).join(" → ");
  const tell = () => ({
    cells: cells({ entry, outcomes, took: `${entry.level} · ${took}` }), isRead: runs.every((run) => run.isRead),
    words: `${id} ${known.map((run) => `${run.check(id).entry.title} ${textOf(run.check(id).entry)}`).join(" ")}`.toLowerCase(),
    suite: entry.suite, kinds: { change, level: entry.level, before: outcomes[0], after: outcomes[1] },
  });
  const open = () => make("div", { className: "pair" }, ...runs.map((run, n) => make(
    "section", {}, make("h3", {}, SIDES[n]),
    run.listed.has(id) ? detail(run, run.check(id)) : make("p", { className: "empty" }, "This run did not know the check."),
  )));
  return new Row(id, tell, open);
}

// How many checks of each level ended how, before and after.
function figuresOfBoth(runs) {
  const rows = LEVELS.map((level) => make("tr", {}, make("th", { scope: "row" }, level), ...OUTCOMES.map((outcome) => {
    const [before, after] = runs.map((run) =>
      run.report.entries.filter((entry) => entry.level === level && outcomeOf(entry) === outcome).length);
    const text = before === after ? String(after) : `${before} → ${after}`;
    return cell(text, { className: before === after && !after ? "n zero" : before === after ? "n" : `n ${outcome}` });
  })));
  return table(["", ...OUTCOMES], rows, "n");
}

// What was tested, or how, in one run otherwise than in the other.
function conditions(runs) {
  const told = runs.map(({ report: { subject } }) => {
    const { settings, reproduce, declared, ...rest } = subject;
    return new Map([...Object.entries(rest), ...settings.map((one) => [one.setting, one.value])].map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));
  });
  const names = [...new Set(told.flatMap((of) => [...of.keys()]))].filter((name) => told[0].get(name) !== told[1].get(name));
  const rows = names.map((name) => make("tr", {}, cell(name), ...told.map((of) => cell(of.get(name) ?? "", { className: "mono" }))));
  return folded(`${rows.length} conditions of the runs differ`, table(["", "before", "after"], rows));
}

// The checks that took clearly longer or shorter, the largest difference first.
function times(runs, ids) {
  const both = ids.filter((id) => runs.every((run) => run.listed.has(id) && outcomeOf(run.check(id).entry) === "pass"));
  const took = both.map((id) => [id, ...runs.map((run) => run.check(id).entry.duration_ms)]);
  const far = took.filter(([, before, after]) => Math.abs(after - before) > 2000 && Math.max(before, after) > 1.5 * Math.min(before, after));
  far.sort(([, a, b], [, c, d]) => Math.abs(d - c) - Math.abs(b - a));
  const rows = far.slice(0, 50).map(([id, before, after]) =>
    make("tr", {}, cell(id), cell(seconds(before), { className: "n" }), cell(seconds(after), { className: "n" })));
  return folded(`${far.length} checks that passed in both took 2 s and half as long again, more or less`, table(["check", "before", "after"], rows));
}

class ComparePage {
  constructor(runs, differences) {
    for (const run of runs) run.listed = new Set(allOf(run.report).map((entry) => entry.id));
    // In the order of the later report; what it does not know comes last.
    const ids = [...new Set([...runs].reverse().flatMap((run) => allOf(run.report).map((entry) => entry.id)))];
    const differs = new Set(differences.map(({ id }) => id));
    const changes = new Map(ids.map((id) => [id, changeOf(pairOf(runs, id), differs.has(id))]));
    const profiles = [...new Set(runs.map((run) => run.report.subject.profile))];
    document.title = `${differs.size} ended otherwise: ${profiles.join(" → ")}`;
    if (differs.size && !location.hash) state.set({ change: "worse,better,otherwise" });
    const header = make(
      "header", {}, make("h1", {}, pill(runs[0].verdict), "→", pill(runs[1].verdict), profiles.join(" → ")),
      ...runs.map((run, n) => make("p", { className: "about" }, `${SIDES[n]}: ${run.name} · ${about(run)}`)),
      make("p", {}, `${differs.size} of ${ids.length} checks ended otherwise.`),
    );
    this.list = new List(ids.map((id) => compareRow(runs, id, changes.get(id))), { change: CHANGES, level: LEVELS });
    const overviews = () => runs.flatMap((run, n) => [make("h3", {}, SIDES[n]), run.isRead ? overview(run) : ""]);
    this.lines = new Part(() => runs.map((run) => run.isRead), () => make("section", {}, make("h2", {}, "The runs"), ...overviews()));
    this.footer = make("footer", {});
    const beside = make("section", {}, make("h2", {}, "How they were run"), conditions(runs), times(runs, ids));
    this.nodes = [header, make("main", { className: "both" }, figuresOfBoth(runs), this.list.node, this.lines.node, beside), this.footer];
  }

  refresh() {
    this.lines.refresh();
    this.list.refresh();
  }
}
