"use strict";
for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => { if (!confirm(form.dataset.confirm)) event.preventDefault(); });
}
for (const place of document.querySelectorAll("[data-fill]")) {
  fetch(place.dataset.fill).then(async (answer) => { place.innerHTML = await answer.text(); }).catch(() => {
    place.textContent = "The server does not answer.";
  });
}
for (const form of document.querySelectorAll("form[data-upload]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.querySelector("input[type=file]").files[0];
    const said = form.querySelector("output");
    if (!file) { said.textContent = "Choose a file first."; return; }
    said.textContent = "Uploading …";
    const answer = await fetch(form.action, { method: "POST", body: file, headers: { "content-type": "application/octet-stream" } });
    said.textContent = await answer.text();
  });
}
