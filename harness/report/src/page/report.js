// The page of one run.

function reportRow(run, id) {
  const check = run.check(id);
  const tell = () => {
    const { entry } = check;
    const outcome = outcomeOf(entry);
    const used = entry.budget_used_percent ?? -1;
    const took = entry.duration_ms ? duration(entry.duration_ms) : "";
    return {
      cells: cells({ entry, outcomes: [outcome], took, used }), words: `${id} ${entry.title} ${textOf(entry)}`.toLowerCase(),
      suite: entry.suite, kinds: { level: entry.private ? PRIVATE : entry.level, outcome }, took, ms: entry.duration_ms ?? 0, used,
      isRead: run.isRead, evidence: (run.evidence[id] ?? []).length,
    };
  };
  return new Row(id, tell, () => detail(run, check));
}

const PRESETS = [
  ["All", {}], ["Problems", { outcome: TROUBLE.join(",") }], ["MUSTs not passed", { level: "MUST", outcome: ["fail", ...UNJUDGED].join(",") }],
  ["Slowest", { outcome: "pass,fail,blocked,error", sort: "slow" }], [`At least ${CLOSE} % of their limit`, { used: String(CLOSE), sort: "limit" }],
];

const reading = () => make("p", { className: "empty" }, "The events are still being read.");

class ReportPage {
  constructor(run) {
    const ids = () => allOf(run.report).map((entry) => entry.id);
    this.list = null;
    this.header = new Part(() => [run.report.subject, run.report.duration_ms, run.verdict, [...run.stages], countsOf(run.report.entries), run.because.length, run.profiles.length], () => top(run));
    // A line in use is not changed while the run is in progress.
    const seen = () => [run.isRead, run.goesOn, this.line.node.matches(":hover, :focus-within") && run.goesOn ? this.at : (this.at = run.at)];
    this.line = new Part(seen, () => section("run", "The run", run.isRead ? overview(run) : reading()));
    this.parts = [
      new Part(() => [run.because, run.verdict, run.report.explanations], () => reasons(run)),
      new Part(() => run.profiles, () => profiles(run)),
      new Part(ids, () => {
        shownChecks.clear();
        const rows = ids().map((id) => reportRow(run, id));
        this.list = new List(rows, {
          kinds: { level: [...Object.keys(LEVELS), PRIVATE], outcome: [...Object.keys(OUTCOMES), ...Object.keys(UNENDED)] }, presets: run.goesOn ? [...PRESETS, ["Running", { outcome: "running" }]] : PRESETS,
          groupOf: (row) => row.traits.suite, rank: (row) => TROUBLE.indexOf(row.traits.kinds.outcome),
          counted: (some) => countsOf(some.map((row) => run.check(row.id).entry)),
        });
        return this.list.node;
      }),
      this.line,
      new Part(() => [run.report.subject, run.report.stages], () => settings(run)),
    ];
    this.footer = make("footer", {});
    this.nodes = [this.header.node, make("main", {}, this.parts.map((part) => part.node)), this.footer];
  }

  refresh() {
    this.header.refresh();
    this.parts.forEach((part) => part.refresh());
    this.list.refresh();
  }
}

const lacking = (run) => (run.leftOut ? `${run.leftOut} calls and changes are left out here; events.jsonl has them. ` : "");
