// The playground: what is typed is compiled in a worker, and the explorer shows it. Nothing that is typed runs in the page itself.
"use strict";
(() => {
  // Seconds until the worker is ended, for each question.
  const PATIENCE = { explain: 20, run: 30, simulate: 60 };
  // More, for the first kernel in Python: its front end is loaded then.
  const LOADING = 60;
  // Milliseconds after the last key.
  const PAUSE = 250;
  // The longest text in an address, in characters.
  const LONGEST = 100000;
  const $ = (selector) => document.querySelector(selector);
  const make = (tag, kind, text) => Object.assign(document.createElement(tag), { className: kind || "", textContent: text || "" });
  const source = $("#source"), target = $("#target"), state = $("#state"), views = $("#views"), outcome = $("#outcome");

  // The worker. One question is asked at a time; of those that wait only the newest of each kind matters.
  let worker = null, asked = null, number = 0, loaded = false;
  const waiting = new Map();
  function start() {
    // A worker from a file obeys no policy but its own; one that the page makes obeys the page's: it reaches the page's folder alone.
    const file = new URL("worker.js", location.href).href;
    const made = URL.createObjectURL(new Blob([`import ${JSON.stringify(file)};`], { type: "text/javascript" }));
    worker = new Worker(made, { type: "module" });
    loaded = false;
    worker.onmessage = ({ data }) => { if (asked && data.id === asked.id) answered(data); };
    worker.onerror = (event) => { if (asked) answered({ failure: event.message || "the worker could not be loaded" }); };
  }
  function ask(question) {
    return new Promise((resolve) => {
      waiting.get(question.ask)?.resolve(null);
      waiting.set(question.ask, { question, resolve });
      next();
    });
  }
  function next() {
    if (asked || !waiting.size) return;
    const [kind, one] = waiting.entries().next().value;
    waiting.delete(kind);
    if (!worker) start();
    asked = { id: ++number, kind, resolve: one.resolve };
    const patience = PATIENCE[kind] + (one.question.python && !loaded ? LOADING : 0);
    loaded ||= Boolean(one.question.python);
    asked.timer = setTimeout(() => answered({ failure: "it took more than " + patience + " s and was ended" }), patience * 1000);
    worker.postMessage({ id: asked.id, question: one.question });
  }
  function answered({ answer, failure }) {
    const { timer, resolve } = asked;
    clearTimeout(timer);
    asked = null;
    if (failure) {
      // After a failure the compiler's memory is not to be trusted.
      worker.terminate();
      worker = null;
    }
    resolve(failure ? { notes: [{ severity: "error", code: "", message: failure, labels: [] }], failed: true } : answer);
    next();
  }

  // The editor: a text field over the same text in colours.
  let wrong = new Map();
  const isPython = () => /^\s*@\s*[\w.]*jit\b/m.test(source.value);
  const language = () => (!isPython() && /^\s*(\/\/.*\n\s*)*(cuda_tile\.|module|entry|global|#|"builtin)/.test(source.value) ? "cuda_tile" : "python");
  const question = (kind) => ({ ask: kind, text: source.value, target: target.value, ...(isPython() && { python: "kernel.py" }) });
  function paint() {
    const lines = source.value.split("\n"), shown = $("#shown");
    shown.textContent = "";
    lines.forEach((text, i) => {
      const line = make("div", "ln" + (wrong.has(i + 1) ? " " + wrong.get(i + 1) : ""));
      Syntax.paint(line, text || " ", language());
      shown.append(line);
    });
    $("#numbers").textContent = lines.map((_, i) => i + 1).join("\n");
    source.style.height = lines.length * 18 + 20 + "px";
    source.style.width = Math.max(...lines.map((l) => l.length)) + 4 + "ch";
  }
  function note(all) {
    wrong = new Map();
    const list = $("#notes");
    list.textContent = "";
    for (const one of all) {
      const place = one.line ? "line " + one.line + ": " : "";
      const item = make("li", one.severity, (one.code ? one.severity + "[" + one.code + "] " : "") + place + one.message);
      for (const label of one.labels || []) item.append(make("div", "help", "line " + label.line + ": " + label.message));
      if (one.help) item.append(make("div", "help", "help: " + one.help));
      item.addEventListener("click", () => to(one));
      list.append(item);
      if (one.line) wrong.set(one.line, one.severity === "error" ? "wrong" : "warned");
    }
    paint();
  }
  function to({ line, column }) {
    if (!line) return;
    const before = source.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    source.focus();
    source.setSelectionRange(before + column - 1, before + column - 1);
    $("#editor .text").scrollTop = (line - 4) * 18;
  }
  function say(text, bad) {
    state.textContent = text;
    state.classList.toggle("bad", Boolean(bad));
  }

  // The outcome of a run is one more view beside those of the explorer, which there is once a text compiled.
  const graph = $("#results nav [data-view=graph]");
  let explorer = null, kept = { view: "stages", folded: { source: true }, scrolled: {}, rule: null };
  function open(view) {
    kept.view = view;
    if (explorer) explorer.show(view);
    else outcome.hidden = view !== "outcome";
  }

  // Explaining, as the text changes.
  let timer = null;
  function changed() {
    paint();
    views.classList.add("old");
    clearTimeout(timer);
    timer = setTimeout(explain, PAUSE);
  }
  async function explain() {
    const text = source.value, began = performance.now();
    say(isPython() && !loaded ? "loading Python …" : "compiling …");
    const answer = await ask(question("explain"));
    if (!answer || text !== source.value) return;
    note(answer.notes);
    if (!answer.data) return say(answer.failed ? "failed" : "does not compile", true);
    if (explorer) kept = explorer.end();
    if (kept.view === "graph" && !answer.graph) kept.view = "stages";
    // The markup is the compiler's own, as that of reports is; names and texts in it are escaped.
    views.innerHTML = answer.views;
    graph.hidden = !answer.graph;
    explorer = new Explorer($("#results"), answer.data, kept);
    explorer.panes.listeners.push(light);
    views.classList.remove("old");
    say("compiled in " + Math.round(performance.now() - began) + " ms");
  }

  // The line with the cursor chooses its operations in the stages, and operations that are chosen there light up their lines here.
  const written = () => explorer && explorer.panes.panes.find((pane) => pane.stage.name === "source");
  function light(chosen) {
    const pane = written(), lines = $("#shown").children;
    for (let i = 0; i < lines.length; i++) {
      lines[i].classList.toggle("on", (pane.of.get(i + 1) || []).some((n) => chosen.has(n)));
    }
  }
  function point() {
    const pane = written();
    if (!pane || views.classList.contains("old") || source.selectionStart !== source.selectionEnd) return;
    const line = source.value.slice(0, source.selectionStart).split("\n").length;
    explorer.panes.choose(pane.of.get(line) || [], null);
  }

  // Running.
  async function run(kind) {
    open("outcome");
    outcome.textContent = "";
    outcome.append(make("p", "note", kind === "run" ? "running on the evaluator …" : "simulating …"));
    const began = performance.now();
    const answer = await ask(question(kind));
    if (!answer) return;
    outcome.textContent = "";
    note(answer.notes);
    const took = ((performance.now() - began) / 1000).toFixed(1) + " s";
    if (kind === "simulate" && answer.views) {
      const [blocks, all] = answer.blocks;
      const of = blocks < all ? ", " + blocks + " of " + all + " blocks" : "";
      const found = answer.clean ? "Nothing found" : answer.notes.length + " found, beside the source,";
      outcome.append(make("p", answer.clean ? "good" : "bad", found + " under " + answer.schedules + " schedules" + of + "."));
      const reports = make("div", "reports");
      reports.innerHTML = answer.views;
      outcome.append(reports);
      Reports(reports, answer.data);
    }
    if (answer.printed) outcome.append(make("h3", "", "printed"), make("pre", "printed", answer.printed));
    if (kind === "run") for (const array of answer.arrays || []) {
      outcome.append(make("h3", "", array.name + ": " + array.type), make("pre", "array", array.text));
    }
    if (!answer.arrays) outcome.append(make("p", "bad", "It did not run: see the notes below the source."));
    say((answer.arrays ? (kind === "run" ? "ran in " : "simulated in ") : "stopped after ") + took, !answer.arrays);
  }

  // Sharing: the text and the target, compressed, in the part of the address that browsers keep to themselves.
  const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
  async function address() {
    const bytes = await through(new TextEncoder().encode(JSON.stringify([target.value, source.value])), new CompressionStream("deflate-raw"));
    const text = btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""));
    return "#1" + text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  }
  async function shared() {
    const hash = location.hash;
    if (!hash.startsWith("#1")) return null;
    if (hash.length > LONGEST) throw new Error("the address is too long");
    const text = atob(hash.slice(2).replaceAll("-", "+").replaceAll("_", "/"));
    const reader = new Blob([Uint8Array.from(text, (c) => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    // A small address may hold a large text.
    let bytes = [], size = 0;
    for (let part; !(part = await reader.read()).done;) {
      size += part.value.length;
      if (size > 1 << 20) { reader.cancel(); throw new Error("its text is too large"); }
      bytes.push(part.value);
    }
    const [wanted, program] = JSON.parse(await new Blob(bytes).text());
    if (typeof program !== "string") throw new Error("it holds no text");
    return { wanted, program };
  }
  async function share() {
    const hash = await address();
    if (hash.length > LONGEST) return say("the text is too long for an address", true);
    history.replaceState(null, "", hash);
    try {
      await navigator.clipboard.writeText(location.href);
      say("the address is copied");
    } catch {
      say("the address is in the address bar");
    }
  }

  // The beginning.
  const examples = $("#examples");
  for (const { name } of EXAMPLES) examples.append(Object.assign(make("option", "", name), { value: name }));
  function choose(name) {
    source.value = (EXAMPLES.find((e) => e.name === name) || EXAMPLES[0]).text;
    changed();
  }
  examples.addEventListener("change", () => { history.replaceState(null, "", location.pathname + location.search); choose(examples.value); });
  source.addEventListener("input", changed);
  source.addEventListener("click", point);
  source.addEventListener("keyup", (event) => { if (event.key.startsWith("Arrow")) point(); });
  source.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run(event.shiftKey ? "simulate" : "run");
    }
  });
  target.addEventListener("change", changed);
  $("#run").addEventListener("click", () => run("run"));
  $("#simulate").addEventListener("click", () => run("simulate"));
  $("#share").addEventListener("click", share);
  async function begin() {
    try {
      const given = await shared();
      if (given) {
        if ([...target.options].some((o) => o.value === given.wanted)) target.value = given.wanted;
        source.value = given.program;
        return changed();
      }
    } catch (error) {
      say("the address cannot be read: " + error.message, true);
    }
    choose(examples.value);
  }
  addEventListener("hashchange", begin);
  begin();
})();
