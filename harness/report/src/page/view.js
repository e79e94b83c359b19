// The parts of a page: every text of a run is put in as text, never as markup.

function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name.replaceAll(/[A-Z]/g, (c) => `-${c.toLowerCase()}`), value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const folded = (title, ...inside) => make("details", {}, make("summary", {}, title), ...inside);
const cell = (text, props = {}) => make("td", props, text);

function table(heads, rows, className = "") {
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col", className }, text)));
  return make("div", { className: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

// What the page shows at the moment is in its address, so that it can be sent to somebody.
const state = {
  get: () => new URLSearchParams(location.hash.slice(1)),
  set(change) {
    const now = state.get();
    for (const [key, value] of Object.entries(change)) value ? now.set(key, value) : now.delete(key);
    history.replaceState(null, "", `#${now}`);
  },
};

// A part of the page that is drawn anew when what it shows has become other; `of` tells what that is.
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

const pill = (verdict) => make("span", { className: `pill ${verdict}` }, verdict.replace("-", " "));

// What a run was of, in a line.
function about({ report }) {
  const { subject } = report;
  return [
    subject.image || "no image", subject.kubernetesVersion && `Kubernetes ${subject.kubernetesVersion} on ${subject.backend}`,
    subject.topology, subject.dialect && `dialect ${subject.dialect}`, report.started, seconds(report.duration_ms),
    `harness ${subject.harnessVersion}, checks ${subject.checkSet}`,
  ].filter(Boolean).join(" · ");
}

function top(run) {
  const { report, verdict } = run;
  const { profile } = report.subject;
  document.title = `${verdict.replace("-", " ")}: ${profile}`;
  const header = make(
    "header", {}, make("h1", {}, pill(verdict), profile || "no profile"), make("p", { className: "about" }, about(run)),
  );
  if (run.goesOn) {
    const judged = report.entries.filter((entry) => entry.outcome !== "skip");
    const ended = judged.filter((entry) => !UNENDED.includes(entry.outcome)).length;
    const now = [...run.stages].filter((stage) => stage !== "checks").join(", ");
    header.append(make("p", { className: "about" }, now ? `now: ${now}` : `${ended} of ${judged.length} checks have ended`));
  }
  if (report.environment_error) header.append(make("pre", { className: "error" }, report.environment_error));
  return header;
}

function figures(run) {
  const counted = (level, outcome) =>
    run.report.entries.filter((entry) => entry.level === level && outcomeOf(entry) === outcome).length;
  const shown = run.goesOn ? [...OUTCOMES, ...UNENDED] : OUTCOMES;
  const rows = LEVELS.map((level) =>
    make("tr", {}, make("th", { scope: "row" }, level), ...shown.map((outcome) => {
      const n = counted(level, outcome);
      return cell(String(n), { className: n ? `n ${outcome}` : "n zero" });
    })));
  return table(["", ...shown], rows, "n");
}

// A reason in one line: the promise, if one was broken.
const brief = (why) => (/(?:^|: |; )promise: (.*)$/.exec(why)?.[1] ?? why.replace(/^(fail|blocked|error): /, ""))
  .split(/; (?:subject|expected|last seen|waited|cloud): /)[0];

// Reasons that several checks share are told once.
function reasons(run) {
  const by = new Map();
  for (const [id, why] of run.because) by.set(brief(why), [...(by.get(brief(why)) ?? []), id].filter(Boolean));
  if (!by.size) return null;
  const link = (id) => [make("a", { href: `#check=${id}`, onclick: () => setTimeout(() => show(id)) }, id), " "];
  const items = [...by].slice(0, 40).map(([why, ids]) =>
    make("li", {}, ...ids.slice(0, 12).flatMap(link), ids.length > 12 ? `and ${ids.length - 12} more ` : "", why.slice(0, 300)));
  return make("section", {}, make("h2", {}, run.goesOn ? "What failed so far" : `Why ${run.verdict.replace("-", " ")}`), make("ul", { className: "why" }, ...items));
}

function overview(run) {
  const rows = [...run.lanes].sort(([a], [b]) => a - b).filter(([, lane]) => lane.checks.length).map(([number, lane]) => ({
    label: `cluster ${number}`,
    bars: lane.checks.map((check) => ({
      from: check.from, to: run.endOf(check), text: `${check.entry.id}: ${outcomeOf(check.entry)}`,
      fill: { pass: "pass", fail: "fail", blocked: "blocked", error: "error", running: "accent" }[outcomeOf(check.entry)] ?? "other",
      pale: outcomeOf(check.entry) === "pass", open: () => show(check.entry.id),
    })),
  }));
  if (!rows.length) return make("p", { className: "empty" }, "No check ran.");
  const bars = rows.flatMap((row) => row.bars);
  const [from, to] = [Math.min(...bars.map((bar) => bar.from)), Math.max(...bars.map((bar) => bar.to))];
  return new TimeLine({ from, to, rows, label: "every check of the run", row: 9 }).node;
}

function promises(run, check) {
  const fill = { met: "pass", broken: "fail", untold: "error", open: "other" };
  return check.promises.map((promise) => ({
    from: promise.from, to: promise.to ?? run.endOf(check), fill: fill[promise.state], pale: promise.state === "met",
    text: `${promise.promise}: ${promise.state} (at most ${seconds(promise.limit_ms)}${promise.throughout ? ", throughout" : ""})`
      + (promise.seen ? `; last seen: ${promise.seen}` : ""),
    open: () => {
      if (!promise.node?.isConnected) return;
      promise.node.closest("details").open = true;
      promise.node.scrollIntoView({ block: "center" });
    },
  }));
}

function lines(run, check, all, pinned) {
  const marks = run.marksOf(check, all);
  const calls = [...new Set(marks.map((mark) => mark.row))].filter((row) => row.startsWith("calls")).sort();
  const until = run.endOf(check);
  const spans = (row) => check.spans.filter((span) => span.row === row)
    .map((span) => ({ from: span.from, to: span.to ?? until, fill: "fault", text: span.text, open: () => pinned(span) }));
  const of = (row) => marks.filter((mark) => mark.row === row).map((mark) => ({
    at: mark.at, text: mark.text, tall: mark.writes || !row.startsWith("calls"), open: () => pinned(mark),
    fill: mark.failed ? "fail" : mark.writes ? "write" : row.startsWith("calls") ? "read" : "accent",
  }));
  const rows = [
    { label: "promises", bars: promises(run, check) },
    { label: "faults", bars: spans("faults") }, { label: "barriers", bars: spans("barriers") },
    ...[...ROWS, ...calls].map((row) => ({ label: row, marks: of(row) })),
    ...run.logsOf(check).map(([name, logged], n) => ({
      label: `log ${n + 1}`,
      marks: logged.map((mark) => ({
        at: mark.at, text: `${name}: ${mark.text.slice(0, 400)}`, fill: mark.failed ? "fail" : "read", open: () => pinned(mark),
      })),
    })),
  ];
  return { marks, line: new TimeLine({ from: check.from, to: until, rows, label: `what happened during ${check.entry.id}` }) };
}

function story(run, check) {
  if (check.from === undefined) return null;
  const place = make("div");
  const pin = make("pre", { hidden: true });
  const pinned = ({ event }) => Object.assign(pin, { hidden: false, textContent: JSON.stringify(event, null, 2) });
  const table_ = make("div");
  const draw = (all) => {
    const { marks, line } = lines(run, check, all, pinned);
    place.replaceChildren(line.node);
    const shown = marks.slice(0, 500);
    const rows = shown.map((mark) => make("tr", {}, cell(seconds(mark.at - check.from), { className: "n" }), cell(mark.row), cell(mark.text, { className: "mono" })));
    table_.replaceChildren(folded(`${marks.length} events${marks.length > shown.length ? ", the first 500" : ""}`, table(["at", "of", "what"], rows)));
  };
  const box = make("input", { type: "checkbox", onchange: () => draw(box.checked) });
  const tools = make("label", { className: "tools" }, box, "everything in this cluster at that time, objects of other checks too");
  draw(false);
  return make("div", {}, make("h3", {}, "What happened"), place, tools, pin, table_);
}

function detail(run, check) {
  const { entry } = check;
  const outcome = outcomeOf(entry);
  const inside = make("div", { className: "detail" });
  if (textOf(entry)) inside.append(make("pre", { className: outcome }, outcome === "blocked" ? `blocked by ${entry.by}\n${textOf(entry)}` : textOf(entry)));
  for (const promise of outcome === "running" ? check.promises.filter((promise) => promise.to === null) : []) {
    const until = `${promise.promise}\nexpected: ${promise.expected}\nsince ${seconds(run.at - promise.from)}, at most ${seconds(promise.limit_ms)}`;
    inside.append(make("pre", { className: "running" }, `waits: ${until}`));
  }
  if (entry.private) inside.append(make("p", { className: "about" }, "A check of the vendor's own. It is not of the contract and has no effect on the verdict."));
  const demand = run.demands[entry.id.split(".")[0]];
  if (demand) {
    inside.append(make("p", { className: "demand" }, demand.requires, " ", make("span", { className: "about" }, demand.why)));
    inside.append(folded("how it is provoked", make("p", {}, demand.provoked)));
  }
  const deviation = run.report.subject.declared?.[entry.id];
  if (deviation) inside.append(make("p", {}, `The vendor's word for it: ${deviation}`));
  const facts = Object.entries(entry.facts ?? {});
  if (facts.length) inside.append(table(["measured", ""], facts.map(([name, value]) => make("tr", {}, cell(name), cell(value, { className: "mono" })))));
  const happened = run.isRead ? story(run, check) : make("p", { className: "empty" }, "The events are still being read.");
  if (happened) inside.append(happened);
  if (check.promises.length) {
    const rows = check.promises.map((promise) => promise.node = make(
      "tr", {},
      cell(promise.state, { className: { met: "pass", broken: "fail", untold: "error" }[promise.state] ?? "" }),
      cell(promise.promise),
      cell(promise.to === null ? "" : `${seconds(promise.to - promise.from)} of ${seconds(promise.limit_ms)}`, { className: "n" }),
    ));
    inside.append(folded(`${rows.length} promises`, table(["", "promise", "took"], rows)));
  }
  for (const [name, text] of run.evidence[entry.id] ?? []) inside.append(folded(name, make("pre", {}, text)));
  const again = `ccm-conformance run --only ${entry.id} --keep on-failure`;
  inside.append(make("p", { className: "about" }, `${entry.suite} · ${entry.sharing} · again: `, make("code", {}, again), " · by hand: ", make("code", {}, `ccm-conformance explain ${entry.id}`)));
  return inside;
}

function settings(run) {
  const rank = { looser: 0, stricter: 1 };
  const all = [...run.report.subject.settings].sort((a, b) => (rank[a.bearing] ?? 2) - (rank[b.bearing] ?? 2));
  const rows = all.map((one) => make(
    "tr", {}, cell(one.setting), cell(one.value, { className: "mono" }), cell(one.contract ?? ""), cell(one.from),
    cell(one.bearing === "none" ? "" : one.bearing, { className: one.bearing === "looser" ? "fail" : "" })));
  const stages = run.report.stages.map((one) => make("tr", {}, cell(one.stage), cell(seconds(one.took_ms), { className: "n" })));
  return make(
    "section", {}, make("h2", {}, "How it was run"),
    folded(`${rows.length} settings, ${run.relaxed.length} of them looser than the contract`, table(["setting", "value", "contract", "set by", "beside the contract"], rows)),
    folded("what took how long", table(["stage", "took"], stages)),
    make("p", { className: "about" }, "again: ", make("code", {}, run.report.subject.reproduce)),
  );
}
