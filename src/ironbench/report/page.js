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
  const formatLocale = { decimal: ".", thousands: "\u202f", grouping: [3], currency: ["", ""] };
  const draw = (name) => {
    for (const [id, specification] of Object.entries(specifications)) {
      const place = document.getElementById(id);
      const options = { actions: false, renderer: "svg", formatLocale, tooltip: { theme: name } };
      vegaEmbed(place, coloured(specification, themes[name]), options).catch((error) => {
        place.textContent = `This chart could not be drawn (${error.message}); its figures are in the table below.`;
      });
    }
  };
  const now = () => draw(dark.matches ? "dark" : "light");
  dark.addEventListener("change", now);
  addEventListener("beforeprint", () => draw("light"));
  addEventListener("afterprint", now);
  now();
})();
