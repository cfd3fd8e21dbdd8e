"use strict";
(() => {
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const specifications = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coloured = (value, tokens, key) => {
    if (key === "datasets") return value;
    if (Array.isArray(value)) return value.map((part) => coloured(part, tokens));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, coloured(part, tokens, name)]));
    }
    return typeof value === "string" && value[0] === "@" ? tokens[value.slice(1)] ?? value : value;
  };
  const formatLocale = { decimal: ".", thousands: ",", grouping: [3], currency: ["", ""] };
  const views = new Map();
  const draw = (name, some = specifications) => {
    for (const [id, specification] of Object.entries(some)) {
      const place = document.getElementById(id);
      if (!place) continue;
      const options = { actions: false, renderer: "svg", formatLocale, tooltip: { theme: name } };
      // A Vega view keeps its window listeners until it is finalized, so the old view of an element is finalized before a new one is drawn.
      const drawn = async (before) => {
        before?.finalize();
        return vegaEmbed(place, coloured(specification, themes[name]), options);
      };
      views.set(id, Promise.resolve(views.get(id)).then(drawn).catch((error) => {
        place.textContent = `This chart could not be drawn (${error.message}); its figures are in the table below.`;
      }));
    }
  };
  const cell = (text) => {
    const plain = text.replace(/(?<![\d,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])/g, (figure) => figure.replaceAll(",", "")).replace(/\u2212(?=\d)/g, "-").replace(/[\u202f\u00a0]/g, " ");
    // The apostrophe prevents a spreadsheet from evaluating the label as a formula.
    const safe = /^[=@\t\r]|^[+-](?![\d.])/.test(plain) ? `'${plain}` : plain;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const title = (place) => {
    const near = place.closest("figure")?.querySelector("figcaption") ?? place.closest("section")?.querySelector("h2");
    return (near?.firstChild?.textContent ?? "table").trim().replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase();
  };
  for (const place of document.querySelectorAll(".scroll")) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "csv", textContent: "CSV", title: "Save this table as CSV" });
    button.addEventListener("click", () => {
      const rows = [...place.querySelectorAll("tr")].map((row) => [...row.cells].map((one) => cell(one.textContent)).join(","));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([`\ufeff${rows.join("\r\n")}\r\n`], { type: "text/csv" }));
      link.download = `${title(place)}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    place.after(button);
  }
  const now = (some) => draw(dark.matches ? "dark" : "light", some);
  // While a page is open, its elements can get new charts.
  document.addEventListener("charts", (event) => { Object.assign(specifications, event.detail); now(event.detail); });
  dark.addEventListener("change", () => now());
  addEventListener("beforeprint", () => draw("light"));
  addEventListener("afterprint", () => now());
  now();
})();
