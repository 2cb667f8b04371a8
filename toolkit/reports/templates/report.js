// Folds long lists on a phone, and saves the frames as CSV. The links hold them compressed; without this script the browser saves the .csv.gz files.
"use strict";
async function save(link) {
  const packed = Uint8Array.from(atob(link.href.slice(link.href.indexOf(",") + 1)), (sign) => sign.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const saved = document.createElement("a");
  saved.href = URL.createObjectURL(new Blob([await new Response(unpacked).blob()], { type: "text/csv;charset=utf-8" }));
  saved.download = link.dataset.csv;
  saved.click();
  setTimeout(() => URL.revokeObjectURL(saved.href), 60000);
}
if (matchMedia("screen and (max-width: 40rem)").matches) {
  for (const list of document.querySelectorAll("details")) list.open = false;
}
for (const link of document.querySelectorAll("a[data-csv]")) {
  link.addEventListener("click", (event) => {
    if (!("DecompressionStream" in window) || !link.dataset.csv) return;
    event.preventDefault();
    save(link).catch(() => { delete link.dataset.csv; link.click(); });
  });
}
