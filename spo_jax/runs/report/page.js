"use strict";
// Programs are shown as text nodes only, so nothing that a model wrote is read as HTML.
const dialog = document.getElementById("program"), shown = document.getElementById("shown");
const kept = new Map();

async function pack(kind, round) {
  const key = kind + round;
  if (!kept.has(key)) kept.set(key, unpack(document.querySelector(
    `script.pack[data-kind="${kind}"][data-round="${Number(round)}"]`)));
  return kept.get(key);
}
async function unpack(element) {
  if (!element) return {};
  const bytes = Uint8Array.from(atob(element.textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}
async function find(name) {
  const round = /^[A-Z](\d+)\./.exec(name);
  return round ? (await pack("programs", round[1]))[name] : undefined;
}
function make(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}
function link(name) {
  const made = make("button", name, "name");
  made.dataset.p = name;
  return made;
}
function number(value) {
  return value === null ? "–" : value.toFixed(4).replace("-", "−");
}
function fold(title, fill) {
  const made = make("details"), head = make("summary", title);
  made.append(head);
  made.addEventListener("toggle", () => { if (made.open && made.children.length === 1) fill(made); });
  return made;
}
// The longest common subsequence of lines, as [mark, line] with marks " ", "-" and "+"; null where
// there are too many. As in changes.py: a row of the table is one integer, a bit a column.
const MOST = 250e6;
function differences(old, now) {
  const a = old.split("\n"), b = now.split("\n");
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const same = line => [" ", line];
  const mine = a.slice(head, a.length - tail), its = b.slice(head, b.length - tail);
  if (mine.length * its.length > MOST) return null;
  return [...a.slice(0, head).map(same), ...changed(mine, its), ...a.slice(a.length - tail).map(same)];
}
function changed(a, b) {
  const at = new Map(), every = (1n << BigInt(b.length)) - 1n, rows = [], found = [];
  b.forEach((line, j) => at.set(line, (at.get(line) || 0n) | 1n << BigInt(j)));
  let row = every, i = a.length, j = b.length;
  for (const line of a) {
    const common = row & (at.get(line) || 0n);
    row = ((row + common) | (row - common)) & every;
    rows.push(row);
  }
  const set = (i, j) => rows[i - 1] >> BigInt(j - 1) & 1n;
  while (i && j) {
    if (set(i, j)) found.push(["+", b[--j]]);
    else if (i > 1 && !set(i - 1, j)) found.push(["-", a[--i]]);
    else { j--; found.push([" ", a[--i]]); }
  }
  while (j) found.push(["+", b[--j]]);
  while (i) found.push(["-", a[--i]]);
  return found.reverse();
}
function diff(old, now) {
  const found = differences(old, now);
  if (!found) return make("p", "These programs have too many lines to be compared here.", "missing");
  const made = make("pre", undefined, "diff");
  for (const [mark, line] of found)
    made.append(make("span", mark + " " + line, {"+": "new", "-": "old"}[mark]));
  return made;
}
async function card(name) {
  const made = make("article"), program = await find(name);
  const title = make("h3", name);
  made.append(title);
  if (!program) {
    made.append(make("p", "This file does not hold this program; run[\"" + name + "\"] in Python does.", "missing"));
    return made;
  }
  title.append(make("span", ` ${program.role} of round ${program.round}, ${program.form || "no form"}, credit ${number(program.credit)}`));
  made.append(make("p", program.strategy), make("pre", program.source));
  for (const parent of program.parents) {
    const line = make("p", "Parent ");
    line.append(link(parent));
    made.append(line, fold("Changes to " + parent, async into => {
      const old = await find(parent);
      into.append(old ? diff(old.source, program.source) : make("p", "This file does not hold " + parent + ".", "missing"));
    }));
  }
  if (program.pairs.length) made.append(fold("Its pairs, the best first", into => {
    const table = make("table", undefined, "plain"), body = make("tbody");
    for (const [other, utility, status] of program.pairs) {
      const row = make("tr"), cell = make("td");
      cell.append(link(other));
      row.append(cell, make("td", number(utility)), make("td", status));
      body.append(row);
    }
    table.append(body);
    into.append(table);
  }));
  if (program.prompt) made.append(fold("Its prompt", async into => {
    const text = (await pack("prompts", program.prompt[0]))[program.prompt[1]];
    into.append(text === undefined ? make("p", "This file does not hold the prompt.", "missing") : make("pre", text));
  }));
  return made;
}
async function show(head, names) {
  const cards = await Promise.all(names.map(card));
  const both = make("div", undefined, "both");
  both.append(...cards);
  shown.replaceChildren(make("h3", head), both);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}
function open(target) {
  const found = target.closest("[data-p]");
  if (!found) return false;
  const row = found.closest("tr[data-d]");
  const pair = row && found.tagName === "TD";
  const names = pair ? [row.dataset.d, found.dataset.p] : [found.dataset.p];
  show(pair ? `J ${found.textContent}: ${names.join(" with ")}` : "Program", names);
  return true;
}
document.addEventListener("click", event => {
  if (event.target === dialog) dialog.close();
  else open(event.target);
});
// Arrow keys walk over a matrix, and Enter opens the pair.
document.addEventListener("keydown", event => {
  const table = event.target.closest("table.payoff");
  if ((event.key === "Enter" || event.key === " ") && event.target.matches("g[data-p]")) {
    event.preventDefault();
    open(event.target);
  }
  if (!table || event.target !== table) return;
  const here = table.querySelector("td.here");
  if (event.key === "Enter" && here) { event.preventDefault(); return open(here); }
  const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
  if (!move) return;
  event.preventDefault();
  let next = table.querySelector("td[data-p]");
  if (here) {
    const row = table.rows[here.parentNode.rowIndex + move[0]];
    next = row && row.cells[here.cellIndex + move[1]];
  }
  if (!next || !next.dataset.p) return;
  if (here) here.classList.remove("here");
  next.classList.add("here");
  next.scrollIntoView({block: "nearest", inline: "nearest"});
});

for (const film of document.querySelectorAll(".film")) {
  const frames = [...film.querySelectorAll(".frame")], controls = film.querySelector(".controls");
  const slider = controls.querySelector("input"), toggle = controls.querySelector("[data-film=toggle]");
  let at = 0, timer = null;
  const go = to => {
    frames[at].classList.remove("now");
    at = (to + frames.length) % frames.length;
    frames[at].classList.add("now");
    slider.value = at;
  };
  const play = on => {
    clearInterval(timer);
    timer = on ? setInterval(() => go(at + 1), 1400) : null;
    toggle.textContent = on ? "Pause" : "Play";
  };
  film.classList.add("manual");
  controls.hidden = false;
  go(0);
  play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  toggle.addEventListener("click", () => play(timer === null));
  slider.addEventListener("input", () => { play(false); go(Number(slider.value)); });
  for (const button of controls.querySelectorAll("[data-film='1'],[data-film='-1']"))
    button.addEventListener("click", () => { play(false); go(at + Number(button.dataset.film)); });
}
