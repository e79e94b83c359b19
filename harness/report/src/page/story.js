// What happened during a run and during a check, on time lines.

// How much of a text stands on a flag, characters.
const FLAG_TEXT = 44;
// How many events of a check are listed.
const LISTED = 500;

// From this number on, lanes are clusters that a single check has made for itself.
const OWN = 100;

const FILLS = { pass: "pass", fail: "fail", blocked: "blocked", error: "error", running: "accent" };

const clusterName = (number) => (number < OWN ? `cluster ${number + 1}` : `own cluster ${number - OWN + 1}`);

// Every check of the run, a row for each cluster.
function overview(run) {
  const lanes = [...run.lanes].sort(([a], [b]) => a - b).filter(([, lane]) => lane.checks.length);
  const rows = lanes.map(([number, lane]) => ({
    label: lanes.length > 1 ? clusterName(number) : "checks",
    bars: lane.checks.map((check) => ({
      from: check.from, to: run.endOf(check), text: `${check.entry.id}: ${spaced(outcomeOf(check.entry))}`,
      fill: FILLS[outcomeOf(check.entry)] ?? "other", pale: outcomeOf(check.entry) === "pass", open: () => show(check.entry.id),
    })),
  }));
  if (!rows.length) return make("p", { className: "empty" }, "No check ran.");
  const bars = rows.flatMap((row) => row.bars);
  const [from, to] = [Math.min(...bars.map((one) => one.from)), Math.max(...bars.map((one) => one.to))];
  return new TimeLine({ from, to, rows, label: "All checks of the run", row: 9 }).node;
}

const STATES = { met: "kept", broken: "broken", untold: "not judged", open: "under way" };
const STATE_OUTCOMES = { met: "pass", broken: "fail", untold: "error", open: "running" };

function promiseBars(run, check) {
  return check.promises.map((promise) => ({
    from: promise.from, to: promise.to ?? run.endOf(check), fill: FILLS[STATE_OUTCOMES[promise.state]] ?? "other", pale: promise.state === "met",
    text: `${promise.promise}: ${STATES[promise.state]} (at most ${duration(promise.limit_ms)}${promise.throughout ? ", throughout" : ""})`
      + (promise.seen ? `; last seen: ${promise.seen}` : ""),
    open: () => {
      if (!promise.node?.isConnected) return;
      promise.node.closest("details").open = true;
      promise.node.scrollIntoView({ block: "center" });
    },
  }));
}

const cut = (text) => (text.length > FLAG_TEXT ? `${text.slice(0, FLAG_TEXT - 1)}…` : text);

// The change that the broken promise is about, and the moment when it was broken.
function flagsOf(run, check, marks) {
  const broken = run.brokenOf(check);
  if (!broken) return [];
  const change = run.changeBefore(broken, marks);
  const flags = [{ at: broken.to, fill: "fail", name: "violation", text: `violation: expected ${broken.expected}; actual: ${broken.seen}` }];
  if (change) flags.unshift({ at: change.at, fill: "accent", name: cut(`change: ${change.change}`), text: `change: ${change.text}` });
  else flags.unshift({ at: broken.from, fill: "accent", name: "wait begins", text: `the wait for the promise begins: ${broken.promise}` });
  return flags;
}

// Who made the calls of a row.
const caller = (row) => {
  const by = row.slice("calls ".length);
  return by ? `calls of replica ${by}` : "calls, sender unknown";
};

// The name of a replica in the name of its Pod: a in reference-ccm-a-6c89f457b7-jqjph.
const replicaOf = (name) => /^(?:.*-)?([a-z])(?:-[0-9a-z]+-[0-9a-z]{5})?$/.exec(name)?.[1];

function lines(run, check, all, pinned) {
  const marks = run.marksOf(check, all);
  const calls = [...new Set(marks.map((mark) => mark.row))].filter((row) => row.startsWith("calls")).sort();
  const until = run.endOf(check);
  const spans = (row) => check.spans.filter((one) => one.row === row)
    .map((one) => ({ from: one.from, to: one.to ?? until, fill: "fault", text: one.text, open: () => pinned(one) }));
  const of = (row) => marks.filter((mark) => mark.row === row).map((mark) => ({
    at: mark.at, text: mark.text, tall: mark.writes || !row.startsWith("calls"), open: () => pinned(mark),
    fill: mark.failed ? "fail" : mark.writes ? "write" : row.startsWith("calls") ? "read" : "accent",
  }));
  const logs = run.logsOf(check).map(([name, logged]) => ({
    label: replicaOf(name) ? `log of replica ${replicaOf(name)}` : `log of ${name}`,
    marks: logged.map((mark) => ({ at: mark.at, text: `${name}: ${mark.text.slice(0, 400)}`, fill: mark.failed ? "fail" : "read", open: () => pinned(mark) })),
  }));
  const rows = [
    { label: "promises", bars: promiseBars(run, check) },
    { label: "faults", bars: spans("faults") }, { label: "barriers", bars: spans("barriers") },
    ...ROWS.map((row) => ({ label: row === "leader" ? "leader, replicas" : row, marks: of(row) })),
    ...calls.map((row) => ({ label: caller(row), marks: of(row) })), ...logs,
  ];
  return { marks, line: new TimeLine({ from: check.from, to: until, rows, flags: flagsOf(run, check, marks), label: `What happened during ${check.entry.id}` }) };
}

const KEYS_OF_LINES = [["write", "a call that changes the cloud"], ["read", "a call that reads, or a line of a log"], ["fail", "a call or a line with an error"], ["fault", "a fault that the check injects"]];

// The time line of a check, and its events.
function story(run, check) {
  if (check.from === undefined) return null;
  const place = make("div");
  const pin = make("pre", { hidden: true });
  const pinned = ({ event }) => Object.assign(pin, { hidden: false, textContent: JSON.stringify(event, null, 2) });
  const listed = make("div");
  const draw = (all) => {
    const { marks, line } = lines(run, check, all, pinned);
    place.replaceChildren(line.node);
    const rows = () => marks.slice(0, LISTED).map((mark) => make(
      "tr", {}, cell(duration(mark.at - check.from), { className: "n" }),
      cell(mark.row.startsWith("calls") ? caller(mark.row) : mark.row), cell(mark.text, { className: "mono" })));
    const events = folded(`${count(marks.length, "event")}${marks.length > LISTED ? `, the first ${LISTED}` : ""}`);
    events.addEventListener("toggle", () => events.append(table(["at", "about", "what"], rows(), "events")), { once: true });
    listed.replaceChildren(events);
  };
  const box = make("input", { type: "checkbox", onchange: () => draw(box.checked) });
  const tools = make("label", { className: "tools" }, box, "Show everything in this cluster at that time, objects of other checks too");
  const keys = make("p", { className: "line-keys" }, KEYS_OF_LINES.map(([fill, text]) => span("line-key", span(`swatch ${fill}`), text)), span("", "Point at a mark, or walk through them with the arrow keys."));
  draw(false);
  return make("div", {}, make("h4", {}, "What happened"), place, keys, pin, tools, listed);
}
