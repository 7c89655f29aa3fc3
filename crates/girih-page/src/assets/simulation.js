// Statements of a kernel beside its CUDA and what they come from. What has a statement's number chooses it when it is clicked on.
//
// root: the element that holds the reports' markup. data: their panes.
"use strict";
function Reports(root, data) {
  for (const linked of root.querySelectorAll(".linked")) {
    const section = linked.closest("section");
    const panes = new Panes(linked, data.kernels[Number(linked.dataset.kernel)]);
    const rows = [...section.querySelectorAll("[data-statement]")];
    panes.listeners.push((chosen) => {
      for (const row of rows) row.classList.toggle("on", chosen.has(Number(row.dataset.statement)));
    });
    for (const row of rows) {
      row.addEventListener("click", () => {
        panes.choose([Number(row.dataset.statement)], null);
        if (row.tagName === "TR") linked.scrollIntoView({ block: "nearest" });
      });
    }
    for (const line of section.querySelectorAll(".lined td:last-child")) {
      const text = line.textContent;
      line.textContent = "";
      Syntax.paint(line, text, line.dataset.language);
    }
  }
}
