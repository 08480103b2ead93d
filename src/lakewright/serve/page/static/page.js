"use strict";
// Everything here is a convenience: without it, the page shows the same.
(() => {
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];

  function ago(at) {
    const seconds = Math.max(0, Math.floor((Date.now() - at) / 1000));
    const found = units.find(([one]) => seconds >= one);
    return found ? `${Math.floor(seconds / found[0])} ${found[1]}` : `${seconds} s`;
  }

  const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

  function times(root) {
    for (const time of root.querySelectorAll("time")) {
      const at = Date.parse(time.dateTime);
      if (Number.isNaN(at)) continue;
      time.textContent = "ago" in time.dataset ? ago(at) : written.format(at);
    }
  }

  function buttons(root) {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll("button[data-copy]")) button.hidden = false;
  }

  function enhance(root) {
    times(root);
    buttons(root);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    navigator.clipboard.writeText(button.dataset.copy).then(() => {
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
  });

  // What somebody reads or writes must not be replaced under their hands.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const part = event.target;
    const isBusy = part.querySelector("details[open]") || part.contains(document.activeElement) || document.hidden;
    if (part.id === "live" && (isBusy || String(getSelection()))) event.preventDefault();
  });
  document.addEventListener("htmx:load", (event) => enhance(event.target));

  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      document.querySelector(".search input")?.focus();
    }
    if (event.key === "Escape") for (const open of document.querySelectorAll("details.doing[open]")) open.open = false;
  });

  document.addEventListener("toggle", (event) => {
    const form = event.target;
    if (form.matches?.("details.doing[open]")) form.querySelector("input[type=text], select")?.focus();
  }, true);

  for (const input of document.querySelectorAll("[data-filter]")) {
    input.addEventListener("input", () => {
      const text = input.value.toLowerCase();
      for (const row of document.querySelectorAll(input.dataset.filter)) {
        row.hidden = !row.cells[1].textContent.toLowerCase().includes(text);
      }
    });
  }

  const graph = document.querySelector("svg.graph");
  if (graph) {
    const light = (name) => {
      graph.classList.toggle("lit", Boolean(name));
      for (const line of graph.querySelectorAll("path")) {
        line.classList.toggle("near", line.dataset.from === name || line.dataset.to === name);
      }
    };
    graph.querySelector("a.focus")?.scrollIntoView({ block: "nearest", inline: "center" });
    const over = (event) => light(event.target.closest("a")?.dataset.name);
    graph.addEventListener("mouseover", over);
    graph.addEventListener("focusin", over);
    graph.addEventListener("mouseleave", () => light());
    document.querySelector("[data-find]")?.addEventListener("input", (event) => {
      const text = event.target.value.toLowerCase().split(":").pop();
      for (const box of graph.querySelectorAll("a")) {
        const isHit = text && box.dataset.name.toLowerCase().includes(text);
        box.classList.toggle("hit", Boolean(isHit));
      }
      graph.querySelector("a.hit")?.scrollIntoView({ block: "nearest", inline: "center" });
    });
  }

  for (const part of document.querySelectorAll("[data-follow]")) {
    const source = new EventSource(part.dataset.follow);
    source.addEventListener("change", (event) => {
      const log = part.querySelector(".log");
      const isAtEnd = !log || log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
      part.replaceChildren(document.createRange().createContextualFragment(event.data));
      enhance(part);
      const now = part.querySelector(".log");
      if (now && isAtEnd) now.scrollTop = now.scrollHeight;
    });
    source.addEventListener("end", () => { source.close(); location.reload(); });
    source.addEventListener("fault", () => source.close());
  }

  enhance(document);
  setInterval(() => times(document), 15000);
})();
