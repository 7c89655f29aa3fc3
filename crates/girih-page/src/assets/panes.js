// Panes of source side by side. Lines that were made for the same thing have a number in common: choosing one lights up the
// others. Lines are drawn when they come into view, so that a long stage costs nothing until it is read.
"use strict";
// What a page of one file holds.
const readData = () => JSON.parse(document.getElementById("data").textContent);
class Panes {
  static CHUNK = 150;
  static HEIGHT = 18;

  // stages: {name, title, language, text, links: [[line, [number, ...]], ...], kernels: [[name, line], ...], begin, folded};
  // begin: the line from which on a reader looks: that of the first kernel of a run, where others run before it.
  // signal: ends what the panes listen to beyond their own elements.
  constructor(root, stages, signal) {
    this.root = root;
    this.chosen = new Set();
    this.at = null;
    this.listeners = [];
    this.panes = stages.map((stage) => this.pane(stage));
    root.classList.add("panes");
    root.append(...this.panes.map((p) => p.element));
    for (const pane of this.panes) this.begin(pane);
    this.found = [];
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.choose([], null);
      const by = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
      if (!by || !this.at || this.root.offsetParent === null || event.ctrlKey || event.metaKey || event.altKey) return;
      if (["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) return;
      event.preventDefault();
      this.walk(...by);
    }, { signal });
  }

  pane(stage) {
    const make = (tag, kind) => Object.assign(document.createElement(tag), { className: kind || "" });
    const element = make("section", "pane" + (stage.folded ? " folded" : ""));
    element.dataset.stage = stage.name;
    const header = make("header"), title = make("span"), count = make("span", "count"), fold = make("button");
    title.textContent = stage.title || stage.name;
    fold.textContent = "–";
    fold.title = "Fold this stage";
    fold.setAttribute("aria-label", "Fold " + stage.name);
    header.append(title, count);
    const lines = make("div", "lines code");
    const pane = { stage, element, count, lines, chunks: [], text: stage.text.replace(/\n$/, "").split("\n"), of: new Map() };
    for (const [line, numbers] of stage.links) pane.of.set(line, numbers);
    if (stage.kernels && stage.kernels.length > 1) {
      const select = make("select");
      select.setAttribute("aria-label", "Kernel of " + stage.name);
      for (const [name, line] of stage.kernels) {
        const option = make("option");
        option.value = line;
        option.textContent = name;
        select.append(option);
      }
      select.addEventListener("change", () => this.scrollTo(pane, Number(select.value), "start"));
      header.append(select);
    }
    header.append(fold);
    fold.addEventListener("click", (event) => { event.stopPropagation(); this.fold(pane, true); });
    element.addEventListener("click", () => { if (element.classList.contains("folded")) this.fold(pane, false); });
    element.append(header, lines);
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.light(pane, entry.target);
    }, { root: lines, rootMargin: "400px 0px" });
    for (let from = 0; from < pane.text.length; from += Panes.CHUNK) {
      const chunk = make("div", "chunk");
      const part = pane.text.slice(from, from + Panes.CHUNK);
      chunk.style.height = part.length * Panes.HEIGHT + "px";
      chunk.dataset.from = from;
      chunk.textContent = part.join("\n");
      pane.chunks.push(chunk);
      lines.append(chunk);
      seen.observe(chunk);
    }
    lines.addEventListener("click", (event) => {
      const line = this.lineOf(event.target);
      if (!line || String(window.getSelection()).length > 0) return;
      const numbers = pane.of.get(line) || [];
      const again = this.at && this.at.pane === pane && this.at.line === line;
      this.choose(again ? [] : numbers, again || !numbers.length ? null : { pane, line });
    });
    lines.addEventListener("mouseover", (event) => this.hover(pane, this.lineOf(event.target)));
    lines.addEventListener("mouseleave", () => this.hover(pane, null));
    return pane;
  }

  lineOf(element) {
    const line = element.closest(".ln");
    return line ? Number(line.dataset.n) : null;
  }

  // Draws the lines of a chunk one by one.
  light(pane, chunk) {
    if (chunk.classList.contains("lit")) return;
    chunk.classList.add("lit");
    chunk.textContent = "";
    const from = Number(chunk.dataset.from);
    pane.text.slice(from, from + Panes.CHUNK).forEach((text, i) => {
      const line = document.createElement("div");
      line.className = "ln" + (pane.of.has(from + i + 1) ? " made" : "");
      line.dataset.n = from + i + 1;
      Syntax.paint(line, text, pane.stage.language);
      chunk.append(line);
    });
    this.mark(pane, chunk);
  }

  mark(pane, chunk) {
    for (const element of chunk.children) {
      const line = Number(element.dataset.n);
      const numbers = pane.of.get(line) || [];
      element.classList.toggle("on", numbers.some((n) => this.chosen.has(n)));
      element.classList.toggle("near", this.hovered !== undefined && numbers.some((n) => this.hovered.has(n)));
      element.classList.toggle("found", Boolean(pane.found) && pane.found.has(line));
      element.classList.toggle("at", Boolean(this.at) && this.at.pane === pane && this.at.line === line);
    }
  }

  hover(pane, line) {
    const numbers = (line && pane.of.get(line)) || [];
    const key = numbers.join();
    if (key === this.hoverKey) return;
    this.hoverKey = key;
    this.hovered = new Set(numbers);
    for (const p of this.panes) for (const c of p.chunks) if (c.classList.contains("lit")) this.mark(p, c);
  }

  // Lights up all lines of these numbers, and brings the first of each other pane into view.
  choose(numbers, at) {
    this.chosen = new Set(numbers);
    this.at = at;
    for (const pane of this.panes) {
      const lines = this.chosenLines(pane);
      pane.count.textContent = lines.length ? String(lines.length) : "";
      pane.count.title = lines.length + " lines";
      for (const chunk of pane.chunks) if (chunk.classList.contains("lit")) this.mark(pane, chunk);
    }
    this.bring();
    for (const listener of this.listeners) listener(this.chosen, at);
  }

  // Brings the chosen lines into view. What is hidden does not scroll: who shows the panes calls this again.
  bring() {
    for (const pane of this.panes) {
      const lines = this.chosenLines(pane);
      if (lines.length && (!this.at || this.at.pane !== pane)) this.reveal(pane, lines);
    }
  }

  // Goes from the line at hand to the next one that was made for something, or to its counterpart in the next open stage.
  walk(across, down) {
    const { pane, line } = this.at;
    if (down) {
      const lines = [...pane.of.keys()].sort((a, b) => down * (a - b));
      const next = lines.find((n) => down * (n - line) > 0);
      if (next) this.go(pane, next);
      return;
    }
    for (let at = this.panes.indexOf(pane) + across; this.panes[at]; at += across) {
      const lines = this.chosenLines(this.panes[at]);
      if (lines.length && !this.panes[at].element.classList.contains("folded")) return this.go(this.panes[at], Math.min(...lines));
    }
  }

  // Chooses a line, and brings it into view.
  go(pane, line) {
    this.choose(pane.of.get(line) || [], { pane, line });
    this.reveal(pane, [line]);
  }

  // Marks the lines with a text in all stages, and gives how many each has.
  find(text) {
    const wanted = text.toLowerCase();
    this.found = this.panes.map((pane) => {
      const lines = wanted ? pane.text.flatMap((line, i) => (line.toLowerCase().includes(wanted) ? [i + 1] : [])) : [];
      pane.found = new Set(lines);
      for (const chunk of pane.chunks) if (chunk.classList.contains("lit")) this.mark(pane, chunk);
      return lines;
    });
    this.foundAt = -1;
    return this.found.map((lines) => lines.length);
  }

  // Brings the next line with the text that was looked for into view, in the open stages.
  findNext(by) {
    const all = this.found.flatMap((lines, at) => {
      const pane = this.panes[at];
      return pane.element.classList.contains("folded") ? [] : lines.map((line) => ({ pane, line }));
    });
    if (!all.length) return;
    this.foundAt = (this.foundAt + by + all.length) % all.length;
    const { pane, line } = all[this.foundAt];
    this.scrollTo(pane, line, "center");
    pane.element.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  chosenLines(pane) {
    return [...pane.of].filter(([, all]) => all.some((n) => this.chosen.has(n))).map(([line]) => line);
  }

  begin(pane) {
    if (pane.stage.begin > 20) this.scrollTo(pane, pane.stage.begin - 8, "start");
  }

  // Brings the first of the chosen lines into view, unless one is; lines before the beginning only where there are no others.
  reveal(pane, all) {
    const later = all.filter((line) => line >= pane.stage.begin), lines = later.length ? later : all;
    const top = pane.lines.scrollTop, bottom = top + pane.lines.clientHeight;
    const y = (line) => (line - 1) * Panes.HEIGHT;
    if (lines.some((line) => y(line) >= top && y(line) + Panes.HEIGHT <= bottom)) return;
    this.scrollTo(pane, Math.min(...lines), "center");
  }

  scrollTo(pane, line, where) {
    const y = (line - 1) * Panes.HEIGHT;
    pane.lines.scrollTop = where === "center" ? y - pane.lines.clientHeight / 2 : y - 4;
  }

  fold(pane, folded) {
    pane.element.classList.toggle("folded", folded);
    const lines = this.chosenLines(pane);
    if (!folded && lines.length) this.reveal(pane, lines);
    else if (!folded && pane.lines.scrollTop === 0) this.begin(pane);
    for (const listener of this.listeners) listener(this.chosen, this.at);
  }
}
