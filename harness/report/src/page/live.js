// The page of a run in progress, and the start of every page.

const NO_RUN = "No check runs at the moment. This page shows the next run as soon as it begins.";
// How a program says that it has ended, by saying nothing any more.
const GONE = "The program that runs the checks no longer answers: this page shows what it sent last. ";

// The first line of an answer, and the rest.
async function ask(what) {
  const answer = await fetch(what);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const text = await answer.text();
  const end = text.indexOf("\n");
  return [JSON.parse(text.slice(0, end)), text.slice(end + 1)];
}

// Never returns: this page is replaced.
function reload() {
  location.reload();
  return new Promise(() => {});
}

class Live {
  constructor(page) {
    Object.assign(this, { page, run: null, shown: null, said: "", from: 0, head: "", number: 0, asked: new Set() });
  }

  // Asks what is new and shows it, until the run has ended.
  async follow() {
    document.addEventListener("visibilitychange", () => this.draw());
    for (let ended = false; !ended;) {
      try {
        ended = await this.next();
      } catch {
        this.note(GONE);
        break;
      }
    }
    document.documentElement.dataset.ended = "true";
  }

  async next() {
    const [news, lines] = await ask(`news?from=${this.from}&head=${this.head}&run=${this.number}`);
    if (news.again) await reload();
    if (news.waits) {
      this.note(NO_RUN);
      return false;
    }
    Object.assign(this, { from: news.next, head: news.digest, number: news.run });
    if (news.head) {
      if (this.run) this.run.update(news.head);
      else this.run = new Run(news.head, {});
    }
    Object.assign(this.run.demands, news.demands);
    await this.run.read(lines);
    await this.takeEvidence();
    this.note(!news.ended ? "" : news.goes_on ? "The run has ended; the next one appears here. " : `The run has ended; ${news.kept} stays. `);
    if (news.ended) await fetch("taken");
    if (news.ended && news.goes_on) await this.another();
    return news.ended;
  }

  // Waits for the run after this one, and shows it.
  async another() {
    for (;;) {
      const [answer] = await ask(`next?run=${this.number}`);
      if (answer.again) await reload();
    }
  }

  // What was taken of checks that have failed since.
  async takeEvidence() {
    const taken = allOf(this.run.report).filter((entry) => entry.evidence && !(entry.outcome in UNENDED) && !this.asked.has(entry.id));
    for (const { id } of taken) {
      this.asked.add(id);
      const answer = await fetch(`evidence?check=${encodeURIComponent(id)}`);
      if (answer.ok) this.run.evidence[id] = await answer.json();
    }
  }

  draw() {
    if (!this.run || document.hidden) return;
    if (!this.shown) {
      this.shown = new ReportPage(this.run);
      this.page.replaceChildren(...this.shown.nodes);
    }
    this.shown.footer.replaceChildren(this.said, "Sent by ccm-conformance on this machine to this page only.");
    this.shown.refresh();
    if (this.isShown) return;
    this.isShown = true;
    opened();
  }

  note(text) {
    this.said = text;
    if (this.run) this.draw();
    else this.page.replaceChildren(make("p", { className: "faint" }, text));
  }
}

// Shows what the address names, and says that the page is there.
function opened() {
  if (state.word("check")) show(state.word("check"));
  window.addEventListener("hashchange", () => {
    checkList.draw();
    show(state.word("check"));
  });
  document.documentElement.dataset.ready = "true";
}

async function begin() {
  const page = document.getElementById("page");
  if (typeof DecompressionStream === "undefined") {
    page.append(make("p", {}, "This browser is too old to unpack the page; report.yaml in the same folder has the same contents."));
    return;
  }
  const material = await unpacked();
  if (!material) {
    await new Live(page).follow();
    return;
  }
  const runs = material.runs.map((head) => new Run(head, material.demands));
  const shown = material.differences ? new ComparePage(runs, material.differences) : new ReportPage(runs[0]);
  page.append(...shown.nodes);
  shown.refresh();
  await breath();
  let from = 0;
  for (const [n, run] of runs.entries()) {
    const to = endOfLines(material.events, from, material.runs[n].lines);
    await run.read(material.events.slice(from, to));
    from = to;
  }
  material.events = "";
  shown.refresh();
  shown.footer.append(...runs.map(lacking), "Made from events.jsonl by ccm-conformance. This page loads nothing and sends nothing.");
  opened();
}

begin();
