"use strict";
(() => {
  const ROW = 21, GAP = 1, MARGIN = 4, LEAST_LETTERS = 3, THIN = 4;
  const NS = "http://www.w3.org/2000/svg";
  const element = (name, attributes, parent) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent?.append(made);
    return made;
  };
  const prepared = (rows) => {
    const nodes = rows.map(([parent, name, width, kind, strength, detail], id) => ({ id, parent, name, width, kind, strength, detail, callees: [], depth: 0, from: 0 }));
    for (const node of nodes) if (node.parent >= 0) nodes[node.parent].callees.push(node);
    for (const node of nodes) {
      node.callees.sort((a, b) => b.width - a.width);
      let from = node.from;
      for (const callee of node.callees) { callee.from = from; callee.depth = node.depth + 1; from += callee.width; }
    }
    return nodes;
  };
  const pen = document.createElement("canvas").getContext("2d");
  // Shortens a name to a width in pixels. A rest of fewer than LEAST_LETTERS letters means nothing, so it is left out.
  const fitted = (name, width) => {
    if (pen.measureText(name).width <= width) return name;
    let letters = Math.min(name.length - 1, Math.floor(width / 3));
    while (letters >= LEAST_LETTERS && pen.measureText(`${name.slice(0, letters)}…`).width > width) letters -= 1;
    return letters >= LEAST_LETTERS ? `${name.slice(0, letters)}…` : "";
  };
  const flame = (place) => {
    const nodes = prepared(JSON.parse(place.querySelector("script").textContent));
    if (!nodes.length) return;
    const search = place.querySelector("input"), found = place.querySelector("output"), detail = place.querySelector(".detail");
    const reset = place.querySelector("button"), picture = place.querySelector(".bars");
    let zoomed = nodes[0], current = nodes[0], word = "";
    const bars = new Map();
    const above = (node) => { const path = new Set(); for (let one = node; one; one = nodes[one.parent]) path.add(one); return path; };
    const focus = (node, keep) => {
      bars.get(current)?.setAttribute("tabindex", "-1");
      current = node;
      bars.get(node)?.setAttribute("tabindex", "0");
      if (!keep) bars.get(node)?.focus();
      detail.textContent = node.detail;
    };
    const zoom = (node) => { zoomed = node; reset.hidden = node === nodes[0]; draw(); focus(node); };
    const draw = () => {
      const whole = picture.clientWidth, path = above(zoomed), scale = whole / zoomed.width;
      const old = picture.querySelector("svg");
      const drawn = nodes.filter((node) => path.has(node) || (node.from >= zoomed.from - 1e-15 && node.from + node.width <= zoomed.from + zoomed.width * (1 + 1e-9) && node.depth > zoomed.depth && node.width * scale >= 0.7));
      const rows = Math.max(...drawn.map((node) => node.depth)) + 1;
      const svg = element("svg", { width: whole, height: rows * ROW, viewBox: `0 0 ${whole} ${rows * ROW}`, role: "group", "aria-label": place.dataset.alt });
      bars.clear();
      pen.font = `12px ${getComputedStyle(picture).fontFamily}`;
      for (const node of drawn) {
        const over = path.has(node), x = over ? 0 : (node.from - zoomed.from) * scale, width = over ? whole : node.width * scale;
        const hit = word && node.name.toLowerCase().includes(word);
        const bar = element("g", { class: `bar ${node.kind}${hit ? " hit" : ""}${over && node !== zoomed ? " over" : ""}${width < THIN ? " thin" : ""}`, tabindex: -1, role: "button", "aria-label": node.detail }, svg);
        bar.style.setProperty("--strength", `${Math.round(node.strength * 100)}%`);
        element("rect", { x, y: node.depth * ROW, width: Math.max(width - GAP, 0.5), height: ROW - GAP, rx: 2 }, bar);
        const label = width > 2 * MARGIN ? fitted(node.name, width - GAP - 2 * MARGIN) : "";
        if (label) element("text", { x: x + MARGIN, y: node.depth * ROW + 14.5 }, bar).textContent = label;
        element("title", {}, bar).textContent = node.detail;
        bar.addEventListener("click", () => zoom(node));
        bar.addEventListener("pointerenter", () => { detail.textContent = node.detail; });
        bars.set(node, bar);
      }
      if (old) old.replaceWith(svg); else picture.append(svg);
      (bars.get(current) ?? bars.get(zoomed)).setAttribute("tabindex", "0");
    };
    const beside = (step) => {
      const row = [...bars.keys()].filter((node) => node.depth === current.depth).sort((a, b) => a.from - b.from);
      return row[row.indexOf(current) + step];
    };
    picture.addEventListener("keydown", (event) => {
      const next = {
        ArrowDown: () => current.callees.find((node) => bars.has(node)),
        ArrowUp: () => nodes[current.parent],
        ArrowLeft: () => beside(-1),
        ArrowRight: () => beside(1),
      }[event.key];
      if (next) { const node = next(); if (node) focus(node); }
      else if (event.key === "Enter" || event.key === " ") zoom(current);
      else if (event.key === "Escape") zoom(nodes[0]);
      else return;
      event.preventDefault();
    });
    reset.addEventListener("click", () => zoom(nodes[0]));
    search.addEventListener("input", () => {
      word = search.value.trim().toLowerCase();
      const hits = nodes.filter((node) => word && node.name.toLowerCase().includes(word));
      const top = hits.filter((node) => ![...above(node)].some((one) => one !== node && hits.includes(one)));
      const share = top.reduce((sum, node) => sum + node.width, 0) / nodes[0].width;
      found.textContent = word ? `${(100 * share).toPrecision(3)}% of the time` : "";
      draw();
    });
    let known = 0;
    // Drawing changes the height of the observed element, so it waits for the next frame: otherwise the observer would notify itself.
    const fit = () => { if (picture.clientWidth !== known) { known = picture.clientWidth; if (known) draw(); } };
    new ResizeObserver(() => requestAnimationFrame(fit)).observe(picture);
    detail.textContent = nodes[0].detail;
  };
  for (const place of document.querySelectorAll(".flame")) flame(place);
})();
