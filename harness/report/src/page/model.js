// What the page shows: the ledger of the run, and its events by check and by lane.

// What a mark on a time line may be about, in the order of the rows.
const ROWS = ["Node", "Service", "Lease", "Pod", "leader"];
// Facts of objects that checks change; the CCM writes the others.
const CHANGED_BY_CHECKS = ["deletionTimestamp", "externalTrafficPolicy", "ports", "type", "unschedulable"];

function outcomeOf(entry) {
  if (entry.outcome === "error" && entry.message === "interrupted") return "interrupted";
  return entry.outcome === "skip" ? entry.reason : entry.outcome;
}
// Checks of the contract, then those of a vendor's own.
const allOf = (report) => [...report.entries, ...(report.private ?? [])];
const textOf = (entry) => entry.message ?? entry.detail ?? "";

// The data in the page; null while the run is in progress, when the page requests its data.
async function unpacked() {
  const packed = document.getElementById("material").textContent;
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const text = await new Response(plain).text();
  const end = text.indexOf("\n");
  return { ...JSON.parse(text.slice(0, end)), events: text.slice(end + 1) };
}

// Where so many lines of a text end.
function endOfLines(text, from, count) {
  for (let left = count; left > 0; left -= 1) from = text.indexOf("\n", from) + 1;
  return from;
}

// Lets the browser draw before the script continues.
const breath = () => new Promise((go) => setTimeout(go));

class Run {
  constructor(head, demands) {
    Object.assign(this, { demands, evidence: {}, stages: new Set(), at: 0, isRead: false });
    for (const what of ["checks", "lanes", "open"]) this[what] = new Map();
    this.update(head);
  }

  // Takes in what is known of the run as a whole.
  update({ name, report, verdict, because, failures, again, relaxed, profiles, evidence, left_out, unended }) {
    const known = { name, report, verdict, because, failures, again, relaxed, profiles };
    Object.assign(this, known, { leftOut: left_out, goesOn: Boolean(unended) });
    Object.assign(this.evidence, evidence);
    const open = new Set(unended);
    for (const entry of report.private ?? []) entry.private = true;
    for (const entry of allOf(report)) {
      if (open.has(entry.id)) Object.assign(entry, { outcome: entry.started ? "running" : "waiting", message: "" });
      this.check(entry.id).entry = entry;
    }
  }

  check(id) {
    if (!this.checks.has(id)) this.checks.set(id, { entry: { id, outcome: "running" }, promises: [], spans: [] });
    return this.checks.get(id);
  }

  // When a check ended, or how far its run has come.
  endOf(check) {
    return check.to ?? Math.max(this.at, check.from);
  }

  // Reads the events, a few thousand at a time.
  async read(lines) {
    let from = 0;
    for (let count = 1; from < lines.length; count += 1) {
      let to = lines.indexOf("\n", from);
      if (to < 0) to = lines.length;
      if (to > from) {
        try {
          this.take(JSON.parse(lines.slice(from, to)));
        } catch {
          break; // The stream was cut here; the report says so.
        }
      }
      from = to + 1;
      if (count % 4000 === 0) await breath();
    }
    this.isRead = true;
  }

  lane(number) {
    if (!this.lanes.has(number)) this.lanes.set(number, { marks: [], checks: [] });
    return this.lanes.get(number);
  }

  take({ at_ms: at, lane = 0, check: id, event }) {
    const check = id === undefined ? undefined : this.check(id);
    this.at = Math.max(this.at, at);
    const key = (of) => `${lane}/${id ?? ""}/${of}`;
    const mark = (row, text, more = {}) => this.lane(lane).marks.push({ at, row, text, event, ...more });
    const span = (row, text, of) => {
      const begun = { row, text, from: at, to: null, event };
      this.open.set(key(of), begun);
      check?.spans.push(begun);
    };
    const end = (of) => {
      const begun = this.open.get(key(of));
      if (begun) begun.to = at;
    };
    switch (event.type) {
      case "run-began":
        this.began = Date.parse(event.started);
        return;
      case "stage-began":
        this.stages.add(event.stage);
        return;
      case "stage-ended":
        this.stages.delete(event.stage);
        return;
      case "check-began":
        if (!check) return;
        Object.assign(check, { lane, from: at, to: null });
        this.lane(lane).checks.push(check);
        return;
      case "check-repeated":
        // What happened before does not count.
        check?.promises.filter(({ state }) => state === "broken").forEach((promise) => { promise.state = "untold"; });
        return mark("leader", `the check is judged once more: ${event.why}`);
      case "check-ended":
        if (check) check.to = at;
        return;
      case "promise-began": {
        const promise = { ...event, from: at, to: null, state: "open" };
        this.open.set(key(`promise ${event.wait}`), promise);
        check?.promises.push(promise);
        return;
      }
      case "promise-met":
      case "promise-broken": {
        const promise = this.open.get(key(`promise ${event.wait}`));
        const judged = event.judged === false ? "untold" : "broken";
        const state = event.type === "promise-met" ? "met" : judged;
        if (promise) Object.assign(promise, { to: at, state, seen: event.seen, reads: event.reads });
        return;
      }
      case "fault-injected":
        return span("faults", event.what, `fault ${event.fault}`);
      case "fault-cleared":
        return end(`fault ${event.fault}`);
      case "barrier-raised":
        return span("barriers", event.what, `barrier ${event.barrier}`);
      case "barrier-released":
        return end(`barrier ${event.barrier}`);
      case "object-changed": {
        const changes = Object.entries(event.changed ?? {}).map(([what, now]) => `${what}: ${now || "none"}`);
        const name = event.namespace ? `${event.namespace}/${event.name}` : event.name;
        const text = event.deleted ? "deleted" : changes.join("; ") || "changed";
        return mark(event.kind, `${event.kind} ${name}: ${text}`, { about: name, uid: event.uid, change: text });
      }
      case "cloud-call": {
        const took = event.took_ms ? `, ${event.took_ms} ms` : "";
        const text = `${event.operation}: ${event.request} → ${event.outcome}${took}`;
        const failed = !/^2/.test(event.outcome);
        return mark(`calls ${event.by ?? ""}`, text, {
          about: `${event.resource ?? ""} ${event.request}`, uid: event.owner, writes: event.writes, failed,
        });
      }
      case "ccm-leads":
        return mark("leader", "a replica leads");
      case "replica-disturbed":
        return mark("leader", `replica ${event.replica} is disturbed by a check`);
      case "replica-ended":
        return mark("leader", `replica ${event.replica} has ended: ${event.last_lines.at(-1) ?? "it wrote nothing"}`, { failed: true });
      case "nodes-withdrawn":
        return mark("leader", `Nodes withdrawn: ${event.nodes.join(", ")}`);
    }
  }

  // The promise that a check broke, if it did.
  brokenOf(check) {
    return check.promises.find((promise) => promise.state === "broken");
  }

  // The last change that the check made before a promise ended, to the object that the promise is about; else the first
  // that is known of it.
  changeBefore(promise, marks) {
    const uid = /\(uid ([^)]+)\)/.exec(promise.subject ?? "")?.[1];
    const about = marks.filter((mark) => uid && mark.uid === uid && mark.change && mark.at <= promise.to);
    const isOfCheck = ({ event }) => event.deleted || Object.keys(event.changed ?? {}).some((fact) => CHANGED_BY_CHECKS.includes(fact));
    const change = about.filter(isOfCheck).at(-1) ?? about[0];
    return change && { ...change, change: change === about[0] ? `${change.row} created` : change.change };
  }

  // What the CCM logged within a check's time, where its logs were kept: [replica, marks].
  logsOf(check) {
    const logs = (this.evidence[check.entry.id] ?? []).filter(([name]) => /^ccm-.*\.log$/.test(name));
    return logs.map(([name, text]) => {
      const marks = [];
      for (const line of text.split("\n")) {
        const [, when, what] = line.match(/^(\d{4}-\d\d-\d\dT[\d:.]+Z) (.*)$/) ?? [];
        const at = Date.parse(when) - this.began;
        if (!(at >= check.from && at <= this.endOf(check))) continue;
        marks.push({ at, row: "log", text: what, event: { log: name, line }, failed: /\b(error|panic|fatal)\b|^E\d{4}/i.test(what) });
      }
      return [name.replace(/^ccm-|\.log$/g, ""), marks];
    });
  }

  // The marks within a check's time, those of other checks' objects left out unless `all` are wanted.
  marksOf(check, all) {
    const lane = this.lanes.get(check.lane);
    if (!lane) return [];
    const until = this.endOf(check);
    const within = lane.marks.filter((mark) => mark.at >= check.from && mark.at <= until);
    if (all) return within;
    const slug = check.entry.id.toLowerCase().replaceAll(".", "-").replaceAll(/[^a-z0-9-]/g, "-");
    const own = new RegExp(`(^|[^a-z0-9])${slug}-[a-z0-9]{4}([^a-z0-9]|$)`);
    const uids = new Set(within.filter((mark) => mark.uid && own.test(mark.about)).map((mark) => mark.uid));
    const shared = check.entry.sharing === "shared" || check.entry.sharing === "joint";
    return within.filter(
      (mark) => !mark.about || own.test(mark.about) || uids.has(mark.uid) || (!shared && mark.row !== "Service"),
    );
  }
}
