"use strict";
// Asks every other second what has changed, and loads a page again where something has.
const choice = document.getElementById("run"), page = document.getElementById("page");
const status = document.getElementById("status"), stage = document.getElementById("stage");
let shown = "", version = "";

function said(runs) {
  if (choice.value === "compare") {
    const going = runs.filter(run => run.status === "running").length;
    return [`${runs.length} runs, ${going} running`, ""];
  }
  const run = runs[Number(choice.value.slice(4))];
  if (run.error) return [run.error, ""];
  return [`Round ${run.rounds}${run.planned === null ? "" : ` of ${run.planned}`}, ${run.status}`, run.stage];
}
function versionOf(runs) {
  return choice.value === "compare" ? runs.map(run => run.version).join()
    : runs[Number(choice.value.slice(4))].version;
}
// Where the reader was: how far down, and what was unfolded.
function place() {
  const inside = page.contentWindow;
  const open = [...inside.document.querySelectorAll("details")].map(each => each.open);
  return {x: inside.scrollX, y: inside.scrollY, open, hash: inside.location.hash};
}
function load(again) {
  const before = again ? place() : null;
  page.addEventListener("load", () => {
    if (!before) return;
    const all = page.contentWindow.document.querySelectorAll("details");
    // A new round brings new folds; where their number is another, theirs stay as they come.
    if (all.length === before.open.length) all.forEach((each, k) => { each.open = before.open[k]; });
    page.contentWindow.scrollTo(before.x, before.y);
  }, {once: true});
  page.contentWindow.location.replace(choice.value);
}
async function ask() {
  try {
    const answer = await fetch("state");
    if (!answer.ok) throw new Error(await answer.text());
    const runs = await answer.json();
    [status.textContent, stage.textContent] = said(runs);
    const now = versionOf(runs);
    if (shown !== choice.value) { load(false); shown = choice.value; version = now; }
    else if (version !== now) { version = now; load(true); }
  } catch (error) {
    status.textContent = "spo watch has ended; what is shown is the last it saw.";
    stage.textContent = "";
  }
}
choice.addEventListener("change", ask);
ask();
setInterval(ask, 2000);
