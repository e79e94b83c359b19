// The page of one run.

// In place of a level, for the checks of a vendor's own.
const PRIVATE = "private";

function reportRow(run, id) {
  const check = run.check(id);
  const tell = () => {
    const { entry } = check;
    const outcome = outcomeOf(entry);
    const used = entry.budget_used_percent === null || entry.budget_used_percent === undefined ? "" : ` · ${entry.budget_used_percent} %`;
    const took = `${entry.private ? "private · " : ""}${entry.level}${entry.duration_ms ? ` · ${seconds(entry.duration_ms)}${used}` : ""}`;
    return {
      cells: cells({ entry, outcomes: [outcome], took }), words: `${id} ${entry.title} ${textOf(entry)}`.toLowerCase(),
      suite: entry.suite, kinds: { level: entry.private ? PRIVATE : entry.level, outcome }, took, isRead: run.isRead, evidence: (run.evidence[id] ?? []).length,
    };
  };
  return new Row(id, tell, () => detail(run, check));
}

class ReportPage {
  constructor(run) {
    const section = (title, ...inside) => make("section", {}, make("h2", {}, title), ...inside);
    const ids = () => allOf(run.report).map((entry) => entry.id);
    const list = (items) => make("ul", { className: "why" }, ...items.map((text) => make("li", {}, text)));
    this.header = new Part(() => [run.report.subject, run.report.duration_ms, run.verdict, [...run.stages], figures(run).textContent], () => top(run));
    this.list = null;
    // Whoever is at the line is left alone while the run goes on.
    const seen = () => [run.isRead, run.goesOn, this.line.node.matches(":hover, :focus-within") && run.goesOn ? this.at : (this.at = run.at)];
    this.line = new Part(seen, () => section("The run", run.isRead ? overview(run) : make("p", { className: "empty" }, "The events are still being read.")));
    this.parts = [
      new Part(() => figures(run).textContent, () => figures(run)),
      new Part(() => run.report.explanations, () => run.report.explanations?.length && section("What explains the most", list(run.report.explanations))),
      new Part(() => run.profiles, () => run.profiles.length && section("Profiles of conformance", make("pre", {}, run.profiles.join("\n")))),
      new Part(() => [run.because, run.verdict], () => reasons(run)),
      this.line,
      new Part(ids, () => {
        shownChecks.clear();
        this.list = new List(ids().map((id) => reportRow(run, id)), { level: [...LEVELS, PRIVATE], outcome: [...OUTCOMES, ...UNENDED] });
        return this.list.node;
      }),
      new Part(() => [run.report.subject, run.report.stages], () => settings(run)),
    ];
    this.footer = make("footer", {});
    this.nodes = [this.header.node, make("main", {}, ...this.parts.map((part) => part.node)), this.footer];
  }

  refresh() {
    this.header.refresh();
    this.parts.forEach((part) => part.refresh());
    this.list.refresh();
  }
}

const lacking = (run) => (run.leftOut ? `${run.leftOut} calls and changes are left out here; events.jsonl has them. ` : "");
