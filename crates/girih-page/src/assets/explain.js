// The explorer: stages side by side, the rules one by one, the graph of a model. What is chosen in one view is chosen in all.
//
// root: the element that holds the views' markup and the tabs. data: what they show. kept: what an explorer before this one had open,
// its `kept`; without it the address says which view is open.
"use strict";
function Explorer(root, data, kept) {
  const live = new AbortController();
  const $ = (selector) => root.querySelector(selector);
  const make = (tag, kind, text) => {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Views.
  const tabs = [...root.querySelectorAll("nav button[data-view]")].filter((tab) => $("#" + tab.dataset.view));
  let view = "stages";
  function show(wanted) {
    view = wanted;
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab.dataset.view === view));
      $("#" + tab.dataset.view).hidden = tab.dataset.view !== view;
    }
    if (!kept) history.replaceState(null, "", "#" + view);
    if (view === "stages") panes.bring();
  }
  for (const tab of tabs) tab.addEventListener("click", () => show(tab.dataset.view), { signal: live.signal });

  // Stages.
  for (const stage of data.stages) if (kept && stage.name in kept.folded) stage.folded = kept.folded[stage.name];
  const panes = new Panes($("#stages .panes"), data.stages, live.signal);
  const bar = $("#stages .bar");
  const chips = panes.panes.map((pane, i) => {
    if (i > 0) bar.append("→");
    const chip = make("button", "chip", pane.stage.title || pane.stage.name), count = make("b");
    chip.append(count);
    chip.title = "Show or fold this stage";
    chip.addEventListener("click", () => panes.fold(pane, !pane.element.classList.contains("folded")));
    bar.append(chip);
    return { pane, chip, count };
  });
  const find = make("input");
  Object.assign(find, { type: "search", placeholder: "Find in all stages", ariaLabel: "Find in all stages" });
  find.addEventListener("input", () => {
    const counts = panes.find(find.value);
    chips.forEach(({ chip }, at) => { chip.dataset.found = counts[at] || ""; });
    panes.findNext(1);
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") panes.findNext(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { find.value = ""; find.dispatchEvent(new Event("input")); find.blur(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || $("#stages").hidden || ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) return;
    event.preventDefault();
    find.focus();
  }, { signal: live.signal });
  bar.append(find, make("span", "note", data.hint));
  function refresh(chosen) {
    for (const { pane, chip, count } of chips) {
      chip.classList.toggle("shown", !pane.element.classList.contains("folded"));
      chip.setAttribute("aria-pressed", String(!pane.element.classList.contains("folded")));
      count.textContent = pane.count.textContent;
    }
    for (const node of root.querySelectorAll(".graph .node")) {
      node.classList.toggle("on", chosen.has(Number(node.dataset.id)));
    }
    for (const path of root.querySelectorAll(".graph .edges path")) {
      path.classList.toggle("on", chosen.has(Number(path.dataset.from)) || chosen.has(Number(path.dataset.to)));
    }
    for (const row of root.querySelectorAll("tr[data-kernel]")) {
      const of = data.kernels[Number(row.dataset.kernel)].sources;
      row.classList.toggle("on", chosen.size > 0 && of.some((n) => chosen.has(n)));
    }
  }
  panes.listeners.push(refresh);
  // The address leads to the line at hand: #stages/tile/12.
  if (!kept) {
    panes.listeners.push((_chosen, at) => {
      if (view === "stages") history.replaceState(null, "", at ? "#stages/" + at.pane.stage.name + "/" + at.line : "#stages");
    });
  }
  refresh(new Set());

  // Rules.
  const list = $("#rules ol"), search = $("#rules input[type=search]"), changes = $("#rules input[type=checkbox]");
  const position = $("#position"), step = $("#rules .step");
  let shown = [], current = -1;
  const acted = (s) => s.applied.length > 0 || s.number !== null;
  function fill() {
    list.textContent = "";
    shown = [];
    const wanted = search.value.toLowerCase();
    let kernel = "";
    data.steps.forEach((s, at) => {
      if (changes.checked && !acted(s)) return;
      const text = (s.name + " " + s.kernel + " " + s.applied.join(" ") + " " + s.skipped.map((p) => p.join(" ")).join(" "));
      if (wanted && !text.toLowerCase().includes(wanted)) return;
      if (s.kernel !== kernel) {
        kernel = s.kernel;
        list.append(make("li", "kernel", kernel || "the model"));
      }
      const item = make("li", acted(s) ? "" : "quiet", s.name);
      item.setAttribute("role", "option");
      const parts = [];
      if (s.applied.length) parts.push(s.applied.length + " applied");
      if (s.skipped.length) parts.push(s.skipped.length + " refused");
      item.append(make("span", "what", parts.join(", ") || "unchanged"));
      item.addEventListener("click", () => open(shown.findIndex((e) => e.at === at)));
      shown.push({ at, item });
      list.append(item);
    });
    const again = kept && kept.rule ? shown.findIndex((e) => data.steps[e.at].name === kept.rule) : -1;
    open(again >= 0 ? again : shown.length ? Math.max(0, shown.findIndex((e) => acted(data.steps[e.at]))) : -1);
  }
  function open(index) {
    if (current >= 0 && shown[current]) shown[current].item.removeAttribute("aria-selected");
    current = index;
    step.textContent = "";
    position.textContent = index < 0 ? "no rule" : (index + 1) + " of " + shown.length;
    if (index < 0) return;
    const { at, item } = shown[index], s = data.steps[at];
    item.setAttribute("aria-selected", "true");
    item.scrollIntoView({ block: "nearest" });
    step.scrollTop = 0;
    step.append(make("h2", "", s.name + (s.kernel ? " in " + s.kernel : "")));
    const number = s.number === null ? "" : "Rewrite " + s.number + ". ";
    const doc = data.rules[s.name];
    step.append(make("p", "note", number + (acted(s) ? "" : "It changed nothing. ") + (doc ? doc.first : "")));
    if (doc && doc.text) {
      const more = make("details");
      more.append(make("summary", "", "What the rule does"), make("pre", "", doc.text));
      step.append(more);
    }
    section("Applied at", s.applied.map((site) => [site, ""]));
    section("Refused at", s.skipped);
    if (s.diff) {
      step.append(make("h3", "", "Before and after"));
      const diff = make("div", "diff code");
      for (const text of s.diff.replace(/\n$/, "").split("\n")) {
        const sign = text[0];
        const line = make("div", "ln " + (text.startsWith("@@") ? "hunk" : sign === "+" ? "plus" : sign === "-" ? "minus" : ""));
        if (text.startsWith("@@")) line.textContent = text;
        else {
          line.append(sign || " ");
          Syntax.paint(line, text.slice(1), s.language);
        }
        diff.append(line);
      }
      step.append(diff);
    }
  }
  function section(title, sites) {
    if (!sites.length) return;
    step.append(make("h3", "", title));
    const all = make("ul");
    for (const [site, why] of sites) {
      const item = make("li");
      item.append(make("code", "", site));
      if (why) item.append(": " + why);
      all.append(item);
    }
    step.append(all);
  }
  const go = (by) => { if (shown.length) open(Math.min(shown.length - 1, Math.max(0, current + by))); };
  $("#back").addEventListener("click", () => go(-1));
  $("#forth").addEventListener("click", () => go(1));
  search.addEventListener("input", fill);
  changes.addEventListener("change", fill);
  document.addEventListener("keydown", (event) => {
    if ($("#rules").hidden || ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (by) { event.preventDefault(); go(by); }
  }, { signal: live.signal });
  fill();

  // The graph of a model.
  for (const node of root.querySelectorAll(".graph .node")) {
    const choose = () => {
      const on = node.classList.contains("on");
      panes.choose(on ? [] : [Number(node.dataset.id)], null);
    };
    node.addEventListener("click", choose);
    node.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
  }
  const canvas = root.querySelector(".canvas"), drawn = canvas && canvas.querySelector("svg");
  if (drawn) {
    const { width, height } = drawn.viewBox.baseVal;
    let scale = 1;
    // What lies at a point of the window stays there.
    const zoom = (to, x, y) => {
      scale = Math.min(4, Math.max(.02, to));
      const before = drawn.getBoundingClientRect();
      drawn.setAttribute("width", width * scale);
      drawn.setAttribute("height", height * scale);
      const after = drawn.getBoundingClientRect();
      canvas.scrollLeft += after.left + (x - before.left) / before.width * after.width - x;
      canvas.scrollTop += after.top + (y - before.top) / before.height * after.height - y;
    };
    const step = (how) => {
      const box = canvas.getBoundingClientRect();
      const fit = Math.min(1, canvas.clientWidth / width, canvas.clientHeight / height);
      const to = { in: scale * 1.25, out: scale / 1.25, fit }[how];
      if (to) zoom(to, box.left + box.width / 2, box.top + box.height / 2);
    };
    for (const button of root.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => step(button.dataset.zoom));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(scale * Math.exp(-event.deltaY / 400), event.clientX, event.clientY);
    }, { passive: false });
    // The pointer, held down beside the nodes, moves it.
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && !event.target.closest(".node")) held = [event.clientX + canvas.scrollLeft, event.clientY + canvas.scrollTop];
      canvas.classList.toggle("held", held !== null);
    });
    const signal = live.signal;
    document.addEventListener("pointermove", (event) => {
      if (held) { canvas.scrollLeft = held[0] - event.clientX; canvas.scrollTop = held[1] - event.clientY; }
    }, { signal });
    document.addEventListener("pointerup", () => { held = null; canvas.classList.remove("held"); }, { signal });
    document.addEventListener("keydown", (event) => {
      if ($("#graph").hidden || ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      step({ "+": "in", "=": "in", "-": "out", "0": "fit" }[event.key]);
    }, { signal });
  }
  for (const row of root.querySelectorAll("tr[data-kernel]")) {
    row.addEventListener("click", () => {
      const kernel = data.kernels[Number(row.dataset.kernel)];
      panes.choose(row.classList.contains("on") ? [] : kernel.sources, null);
    });
  }

  const [wanted, stage, line] = kept ? [kept.view] : location.hash.slice(1).split("/");
  show(tabs.some((tab) => tab.dataset.view === wanted) ? wanted : "stages");
  const pane = panes.panes.find((pane) => pane.stage.name === stage);
  if (pane && pane.of.has(Number(line))) {
    panes.fold(pane, false);
    panes.go(pane, Number(line));
  }
  if (kept) {
    for (const pane of panes.panes) pane.lines.scrollTop = kept.scrolled[pane.stage.name] || pane.lines.scrollTop;
  }

  this.show = show;
  this.panes = panes;
  // Lets go of the page, and gives what is open.
  this.end = () => {
    live.abort();
    const of = (value) => Object.fromEntries(panes.panes.map((pane) => [pane.stage.name, value(pane)]));
    const at = shown[current];
    return {
      view,
      folded: of((pane) => pane.element.classList.contains("folded")),
      scrolled: of((pane) => pane.lines.scrollTop),
      rule: at ? data.steps[at.at].name : null,
    };
  };
}
