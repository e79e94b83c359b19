// The page itself: every text of the run is put in as text, never as markup.

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

function table(heads, rows) {
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
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

function top(run) {
  const { report, verdict } = run;
  const { subject } = report;
  const about = [
    subject.image || "no image",
    `Kubernetes ${subject.kubernetes_version ?? subject.kubernetesVersion} on ${subject.backend}`,
    subject.topology, `dialect ${subject.dialect}`, report.started, seconds(report.duration_ms),
    `harness ${subject.harnessVersion}, checks ${subject.checkSet}`,
  ];
  document.title = `${verdict}: ${subject.profile}`;
  const header = make(
    "header", {},
    make("h1", {}, make("span", { className: `pill ${verdict}` }, verdict.replace("-", " ")), subject.profile || "no profile"),
    make("p", { className: "about" }, about.filter(Boolean).join(" · ")),
  );
  if (report.environment_error) header.append(make("pre", { className: "error" }, report.environment_error));
  return header;
}

function figures(run) {
  const counted = (level, outcome) =>
    run.report.entries.filter((entry) => entry.level === level && outcomeOf(entry) === outcome).length;
  const rows = LEVELS.map((level) =>
    make("tr", {}, make("th", { scope: "row" }, level), ...OUTCOMES.map((outcome) => {
      const n = counted(level, outcome);
      return cell(String(n), { className: n ? `n ${outcome}` : "n zero" });
    })));
  const heads = make("tr", {}, make("th", {}, ""), ...OUTCOMES.map((o) => make("th", { className: "n", scope: "col" }, o)));
  return make("div", { className: "scroll" }, make("table", {}, make("thead", {}, heads), make("tbody", {}, ...rows)));
}

// A reason in one line: of a broken promise the promise.
const brief = (why) => why.replace(/^(fail|blocked|error): promise: /, "").split(/; (?:subject|expected|last seen): /)[0];

// Reasons that several checks share are told once.
function reasons(run) {
  const by = new Map();
  for (const [id, why] of run.because) by.set(brief(why), [...(by.get(brief(why)) ?? []), id].filter(Boolean));
  if (!by.size) return null;
  const link = (id) => [make("a", { href: `#check=${id}`, onclick: () => setTimeout(() => show(id)) }, id), " "];
  const items = [...by].slice(0, 40).map(([why, ids]) =>
    make("li", {}, ...ids.slice(0, 12).flatMap(link), ids.length > 12 ? `and ${ids.length - 12} more ` : "", why.slice(0, 300)));
  return make("section", {}, make("h2", {}, `Why ${run.verdict.replace("-", " ")}`), make("ul", { className: "why" }, ...items));
}

function overview(run) {
  const rows = [...run.lanes].sort(([a], [b]) => a - b).filter(([, lane]) => lane.checks.length).map(([number, lane]) => ({
    label: `cluster ${number}`,
    bars: lane.checks.map((check) => ({
      from: check.from, to: check.to ?? check.from, text: `${check.entry.id}: ${outcomeOf(check.entry)}`,
      fill: { pass: "pass", fail: "fail", blocked: "blocked", error: "error" }[outcomeOf(check.entry)] ?? "other",
      pale: outcomeOf(check.entry) === "pass", open: () => show(check.entry.id),
    })),
  }));
  if (!rows.length) return make("p", { className: "empty" }, "No check ran.");
  const bars = rows.flatMap((row) => row.bars);
  const [from, to] = [Math.min(...bars.map((bar) => bar.from)), Math.max(...bars.map((bar) => bar.to))];
  return new TimeLine({ from, to, rows, label: "every check of the run", row: 9 }).node;
}

function promises(check) {
  const fill = { met: "pass", broken: "fail", untold: "error", open: "other" };
  return check.promises.map((promise) => ({
    from: promise.from, to: promise.to ?? check.to ?? promise.from, fill: fill[promise.state], pale: promise.state === "met",
    text: `${promise.promise}: ${promise.state} (at most ${seconds(promise.limit_ms)}${promise.throughout ? ", throughout" : ""})`
      + (promise.seen ? `; last seen: ${promise.seen}` : ""),
    open: () => document.getElementById(`promise-${promise.wait}`)?.scrollIntoView({ block: "center" }),
  }));
}

function lines(run, check, all, pinned) {
  const marks = run.marksOf(check, all);
  const calls = [...new Set(marks.map((mark) => mark.row))].filter((row) => row.startsWith("calls")).sort();
  const until = check.to ?? check.from;
  const spans = (row) => check.spans.filter((span) => span.row === row)
    .map((span) => ({ from: span.from, to: span.to ?? until, fill: "fault", text: span.text, open: () => pinned(span) }));
  const of = (row) => marks.filter((mark) => mark.row === row).map((mark) => ({
    at: mark.at, text: mark.text, tall: mark.writes || !row.startsWith("calls"), open: () => pinned(mark),
    fill: mark.failed ? "fail" : mark.writes ? "write" : row.startsWith("calls") ? "read" : "accent",
  }));
  const rows = [
    { label: "promises", bars: promises(check) },
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
    const rows = check.promises.map((promise) => make(
      "tr", { id: `promise-${promise.wait}` },
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

const shownChecks = new Map();

function row(run, check) {
  const { entry } = check;
  const outcome = outcomeOf(entry);
  const used = entry.budget_used_percent === null || entry.budget_used_percent === undefined ? "" : ` · ${entry.budget_used_percent} %`;
  const button = make(
    "button", { className: "row", type: "button", ariaExpanded: "false" },
    make("span", { className: `mark ${outcome}`, title: outcome, ariaLabel: outcome }, GLYPHS[outcome] ?? "–"),
    make("span", { className: "id" }, entry.id),
    make("span", { className: "title" }, entry.title),
    make("span", { className: "took" }, entry.level, entry.duration_ms ? ` · ${seconds(entry.duration_ms)}${used}` : ""),
  );
  const node = make("div", { className: "check", id: `check-${entry.id}` }, button);
  const toggle = (open) => {
    if ((button.ariaExpanded === "true") === open) return;
    button.ariaExpanded = String(open);
    if (open) node.append(detail(run, check));
    else node.lastChild.remove();
  };
  button.addEventListener("click", () => {
    const open = button.ariaExpanded !== "true";
    toggle(open);
    state.set({ check: open ? entry.id : "" });
  });
  shownChecks.set(entry.id, { node, toggle, check, words: `${entry.id} ${entry.title} ${textOf(entry)}`.toLowerCase() });
  return node;
}

function show(id) {
  const shown = shownChecks.get(id);
  if (!shown) return;
  shown.node.hidden = false;
  shown.toggle(true);
  state.set({ check: id });
  shown.node.scrollIntoView({ block: "start" });
}

function checks(run) {
  const { entries } = run.report;
  const list = make("div", {}, ...entries.map((entry) => row(run, run.checks.get(entry.id))));
  const nothing = make("p", { className: "empty", hidden: true }, "No check is like that.");
  const search = make("input", { type: "search", placeholder: "find", ariaLabel: "find in ids, titles and reasons", value: state.get().get("find") ?? "" });
  const suites = [...new Set(entries.map((entry) => entry.suite))];
  const suite = make("select", { ariaLabel: "suite" }, make("option", { value: "" }, "every suite"), ...suites.map((name) => make("option", { value: name }, name)));
  suite.value = state.get().get("suite") ?? "";
  const chip = (key, value) => {
    const pressed = () => (state.get().get(key) ?? "").split(",").filter(Boolean);
    const n = entries.filter((entry) => (key === "level" ? entry.level : outcomeOf(entry)) === value).length;
    if (!n) return null;
    const button = make("button", { className: "chip", type: "button", ariaPressed: String(pressed().includes(value)) }, `${value} ${n}`);
    button.addEventListener("click", () => {
      const now = new Set(pressed());
      now.has(value) ? now.delete(value) : now.add(value);
      button.ariaPressed = String(now.has(value));
      state.set({ [key]: [...now].join(",") });
      filter();
    });
    return button;
  };
  const filter = () => {
    const [levels, outcomes] = ["level", "outcome"].map((key) => (state.get().get(key) ?? "").split(",").filter(Boolean));
    const wanted = search.value.trim().toLowerCase();
    state.set({ find: search.value.trim(), suite: suite.value });
    let left = 0;
    for (const { node, check: { entry }, words } of shownChecks.values()) {
      const fits = (!levels.length || levels.includes(entry.level)) && (!outcomes.length || outcomes.includes(outcomeOf(entry)))
        && (!suite.value || entry.suite === suite.value) && words.includes(wanted);
      node.hidden = !fits;
      left += fits ? 1 : 0;
    }
    nothing.hidden = left > 0;
  };
  search.addEventListener("input", filter);
  suite.addEventListener("change", filter);
  const bar = make("div", { className: "bar", role: "search" }, search, suite, ...LEVELS.map((l) => chip("level", l)), ...OUTCOMES.map((o) => chip("outcome", o)));
  filter();
  return make("section", {}, make("h2", {}, "Checks"), bar, list, nothing);
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

async function begin() {
  const page = document.getElementById("page");
  if (typeof DecompressionStream === "undefined") {
    page.append(make("p", {}, "This browser is too old to unpack the page; report.yaml beside it says the same."));
    return;
  }
  const run = new Run(await unpacked());
  const explained = run.report.explanations ?? [];
  const line = make("div", {}, make("p", { className: "empty" }, "The events are still being read."));
  const main = make(
    "main", {}, figures(run),
    explained.length ? make("section", {}, make("h2", {}, "What explains the most"), make("ul", { className: "why" }, ...explained.map((text) => make("li", {}, text)))) : null,
    run.profiles.length ? make("section", {}, make("h2", {}, "Profiles of conformance"), make("pre", {}, run.profiles.join("\n"))) : null,
    reasons(run), make("section", {}, make("h2", {}, "The run"), line), checks(run), settings(run),
  );
  page.append(top(run), main);
  await breath();
  await run.read();
  line.replaceChildren(overview(run));
  const left = run.leftOut ? `${run.leftOut} calls and changes are left out here; events.jsonl has them. ` : "";
  page.append(make("footer", {}, left, "Made of events.jsonl by ccm-conformance. It loads nothing and sends nothing."));
  const { check } = Object.fromEntries(state.get());
  if (check) show(check);
  for (const { node, toggle } of shownChecks.values()) {
    // What was opened before the events were there.
    if (node.children.length > 1 && node.id !== `check-${check}`) [toggle(false), toggle(true)];
  }
  window.addEventListener("hashchange", () => show(state.get().get("check")));
  document.documentElement.dataset.ready = "true";
}

begin();
