"use strict";
(() => {
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const root = document.documentElement;
  const items = all(".item");
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const filters = all("[data-filter]");

  // Light or dark follows the system until the reader chooses. The browser may deny access to storage.
  const kept = (act) => { try { return act(window.localStorage); } catch { return null; } };
  const chosen = kept((storage) => storage.getItem("lakewright-theme"));
  if (chosen) root.dataset.theme = chosen;
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    kept((storage) => storage.setItem("lakewright-theme", root.dataset.theme));
  });

  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = filters.filter((button) => button.getAttribute("aria-pressed") === "true")
      .map((button) => button.dataset.filter);
    const kinds = wanted.filter((kind) => kind !== "problems");
    const onlyBad = wanted.includes("problems");
    let count = 0;
    for (const item of items) {
      const fits = words.every((word) => item.dataset.text.includes(word))
        && (!kinds.length || kinds.some((kind) => item.classList.contains(kind)))
        && (!onlyBad || item.classList.contains("bad"));
      item.hidden = !fits;
      count += fits;
      const entry = document.querySelector(`nav li[data-for="${CSS.escape(item.id)}"]`);
      if (entry) entry.hidden = !fits;
    }
    const isNarrowed = words.length > 0 || wanted.length > 0;
    for (const chapter of all(".chapter")) chapter.hidden = all(".item:not([hidden])", chapter).length === 0;
    for (const list of all("nav ul")) {
      const isEmpty = all("li:not([hidden])", list).length === 0;
      list.hidden = isEmpty;
      list.previousElementSibling.hidden = isEmpty;
    }
    for (const part of all(".lineage, .problems, .jobs")) part.hidden = isNarrowed;
    found.hidden = !isNarrowed;
    found.textContent = `${count} of ${items.length}`;
  };
  search.addEventListener("input", show);
  for (const button of filters) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      show();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "Escape" && document.activeElement === search) {
      search.value = "";
      show();
    }
  });

  const open = () => {
    const item = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    if (!item || !item.classList.contains("item")) return;
    if (item.hidden) {
      search.value = "";
      for (const button of filters) button.setAttribute("aria-pressed", "false");
      show();
    }
    item.open = true;
    item.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  open();
  window.addEventListener("beforeprint", () => { for (const item of items) item.open = true; });

  // In the graph, a box under the pointer highlights its ancestors and descendants.
  const graph = document.querySelector(".graph");
  if (graph) {
    const lines = all(".line", graph);
    const reach = (name, from, to) => {
      const names = new Set([name]);
      for (const at of names) for (const line of lines) if (line.dataset[from] === at) names.add(line.dataset[to]);
      return names;
    };
    for (const box of all(".box", graph)) {
      const focus = () => {
        const down = reach(box.dataset.name, "from", "to");
        const up = reach(box.dataset.name, "to", "from");
        graph.classList.add("focus");
        for (const other of all(".box", graph)) {
          other.classList.toggle("on", down.has(other.dataset.name) || up.has(other.dataset.name));
        }
        for (const line of lines) {
          const isOn = (down.has(line.dataset.from) && down.has(line.dataset.to))
            || (up.has(line.dataset.from) && up.has(line.dataset.to));
          line.classList.toggle("on", isOn);
        }
      };
      const leave = () => graph.classList.remove("focus");
      box.addEventListener("mouseenter", focus);
      box.addEventListener("focus", focus);
      box.addEventListener("mouseleave", leave);
      box.addEventListener("blur", leave);
    }
  }
})();
