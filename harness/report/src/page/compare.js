// The page of two runs side by side.

const CHANGES = ["worse", "better", "other", "left-out", "same"];
const CHANGE_MEANINGS = {
  worse: "It fell on the scale passed, environment error, blocked, failed; or it was not judged before, and now failed or was blocked.",
  better: "It rose on the scale failed, blocked, environment error, passed; or it was not judged before, and passes now.",
  other: "The outcome changed in another way; usually only one of the runs judged it.",
  "left-out": "One of the runs left it out, or was interrupted before it ended.",
  same: "The outcome is the same in both runs.",
};
Object.assign(MEANINGS, CHANGE_MEANINGS);
Object.assign(SYMBOLS, {
  worse: [["path", { d: "M8 14 1.5 4h13z", ...FILLED }]],
  better: [["path", { d: "M8 2 14.5 12h-13z", ...FILLED }]],
  other: [["path", { d: "M8 1 15 8l-7 7-7-7z", ...FILLED }]],
  "left-out": SYMBOLS.deselected,
  same: [["path", { d: "M3 6h10M3 10h10", ...OUTLINE }]],
});
const SIDES = ["before", "after"];

// How a check ended in each of two runs; null where a run did not know it.
const pairOf = (runs, id) => runs.map((run) => (run.listed.has(id) ? outcomeOf(run.check(id).entry) : null));

const isLeftOut = (outcome) => ["deselected", "interrupted"].includes(outcome);

// `change` is what `compare` says of the two outcomes; undefined where they are the same.
function changeOf([before, after], change) {
  if (before !== after && (isLeftOut(before) || isLeftOut(after))) return "left-out";
  return change ?? "same";
}

function compareRow(runs, id, change) {
  const known = runs.filter((run) => run.listed.has(id));
  const { entry } = known.at(-1).check(id);
  const outcomes = pairOf(runs, id).map((outcome) => outcome ?? "unknown");
  const took = known.map((run) => duration(run.check(id).entry.duration_ms)).join(" → ");
  const used = entry.budget_used_percent ?? -1;
  const tell = () => ({
    cells: cells({ entry, outcomes, took, used }), isRead: runs.every((run) => run.isRead),
    words: `${id} ${known.map((run) => `${run.check(id).entry.title} ${textOf(run.check(id).entry)}`).join(" ")}`.toLowerCase(),
    suite: entry.suite, kinds: { change, level: entry.level, before: outcomes[0], after: outcomes[1] }, ms: entry.duration_ms, used,
  });
  const open = () => make("div", { className: "pair" }, runs.map((run, n) => make(
    "section", { ariaLabel: SIDES[n] }, make("h4", {}, SIDES[n]),
    run.listed.has(id) ? detail(run, run.check(id)) : make("p", { className: "empty" }, "This run did not have the check."),
  )));
  return new Row(id, tell, open);
}

// How many checks of each level ended how, before and after.
function figuresOfBoth(runs) {
  const rows = Object.keys(LEVELS).flatMap((level) => runs.map((run, n) => {
    const counts = passFirst(countsOf(run.report.entries.filter((entry) => entry.level === level)));
    const numbers = counts.map(([outcome, one]) => make("span", { className: `figure ${outcome}`, title: MEANINGS[outcome] }, symbol(outcome, ""), make("strong", {}, String(one)), span("word", spaced(outcome))));
    return make("div", { className: "figures-row" }, span("level-name", `${level} ${SIDES[n]}`), bar(counts, `${level} ${SIDES[n]}: ${inWords(counts)}`), span("numbers", ...numbers));
  }));
  return make("div", { className: "figures both" }, rows);
}

// What was tested, or how, in one run otherwise than in the other.
function conditions(runs) {
  const subjects = runs.map(({ report: { subject } }) => {
    const { settings, reproduce, declared, ...rest } = subject;
    return new Map([...Object.entries(rest), ...settings.map((one) => [one.setting, one.value])].map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));
  });
  const names = [...new Set(subjects.flatMap((of) => [...of.keys()]))].filter((name) => subjects[0].get(name) !== subjects[1].get(name));
  const rows = names.map((name) => make("tr", {}, cell(name), subjects.map((of) => cell(of.get(name) ?? "", { className: "mono" }))));
  return folded(`${count(rows.length, "condition")} of the runs differ${rows.length === 1 ? "s" : ""}`, table(["condition", ...SIDES], rows));
}

// The checks that took clearly longer or shorter, the largest difference first.
function times(runs, ids) {
  const both = ids.filter((id) => runs.every((run) => run.listed.has(id) && outcomeOf(run.check(id).entry) === "pass"));
  const took = both.map((id) => [id, ...runs.map((run) => run.check(id).entry.duration_ms)]);
  const far = took.filter(([, before, after]) => Math.abs(after - before) > 2000 && Math.max(before, after) > 1.5 * Math.min(before, after));
  far.sort(([, a, b], [, c, d]) => Math.abs(d - c) - Math.abs(b - a));
  const rows = far.slice(0, 50).map(([id, before, after]) =>
    make("tr", {}, make("td", {}, linkTo(id)), cell(duration(before), { className: "n" }), cell(duration(after), { className: "n" })));
  return folded(`${count(far.length, "check")} passed in both runs and took clearly longer or shorter`, table(["check", ...SIDES], rows));
}

const COMPARE_PRESETS = [["All", {}], ...CHANGES.slice(0, 3).map((change) => [change[0].toUpperCase() + change.slice(1), { change }]), ["Changed", { change: CHANGES.slice(0, 3).join(",") }]];

class ComparePage {
  constructor(runs, differences) {
    for (const run of runs) run.listed = new Set(allOf(run.report).map((entry) => entry.id));
    // In the order of the later report; what it does not know comes last.
    const ids = [...new Set([...runs].reverse().flatMap((run) => allOf(run.report).map((entry) => entry.id)))];
    const differs = new Map(differences.map(({ id, change }) => [id, change]));
    const changes = new Map(ids.map((id) => [id, changeOf(pairOf(runs, id), differs.get(id))]));
    const changed = (change) => ids.filter((id) => changes.get(id) === change).length;
    const names = [...new Set(runs.map((run) => run.report.subject.profile))].join(" → ");
    document.title = `${differs.size} changed: ${names} – ccm-conformance`;
    if (differs.size && !location.hash) state.set({ change: CHANGES.slice(0, 3).join(",") });
    // What both runs have in common is shown once.
    const facts = runs.map(factsOf);
    const isCommon = ([name, value]) => facts.every((some) => some.some(([other, another]) => other === name && another === value));
    const sides = runs.map((run, n) => make(
      "section", { ariaLabel: SIDES[n] }, make("h2", {}, SIDES[n]), make("p", { className: "faint" }, run.name), make("p", { className: "short" }, inShort(run)),
      factList(facts[n].filter((fact) => !isCommon(fact))),
    ));
    const summary = CHANGES.slice(0, 3).map((change) => button(`figure ${change}`, () => narrowTo({ change }), { title: CHANGE_MEANINGS[change] }, symbol(change, ""), make("strong", {}, String(changed(change))), span("word", change)));
    this.header = make(
      "header", {}, brand(runs[1].report.subject, [["checks", "Checks"], ["run", "Time lines"], ["conditions", "Conditions"]]),
      make("h1", {}, pill(runs[0].verdict), "→", pill(runs[1].verdict), span("subject", names)),
      make("p", { className: "short" }, `${differs.size} of ${ids.length} checks ended differently: `, span("numbers", ...summary), changed("left-out") ? ` ${count(changed("left-out"), "check")} left out of one run` : ""),
      factList(facts[0].filter(isCommon)), make("div", { className: "pair" }, sides), figuresOfBoth(runs),
    );
    this.list = new List(ids.map((id) => compareRow(runs, id, changes.get(id))), {
      kinds: { change: CHANGES, level: Object.keys(LEVELS) }, presets: COMPARE_PRESETS, groupOf: (row) => row.traits.kinds.change, noun: "change", rank: (row) => CHANGES.slice(0, 3).indexOf(row.traits.kinds.change),
      counted: (some) => countsOf(some.map((row) => runs.findLast((run) => run.listed.has(row.id)).check(row.id).entry)),
    });
    const overviews = () => runs.flatMap((run, n) => [make("h3", {}, SIDES[n]), run.isRead ? overview(run) : reading()]);
    this.lines = new Part(() => runs.map((run) => run.isRead), () => section("run", "The runs", overviews()));
    this.footer = make("footer", {});
    const differing = section("conditions", "How they were run", conditions(runs), times(runs, ids));
    this.nodes = [this.header, make("main", { className: "both" }, this.list.node, this.lines.node, differing), this.footer];
  }

  refresh() {
    this.lines.refresh();
    this.list.refresh();
  }
}
