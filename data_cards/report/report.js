"use strict";
// Everything shown of a session goes through textContent; nothing here is ever read as HTML.
(() => {
  const PAGE = 20;
  const rows = JSON.parse(document.getElementById("data").textContent).rows;
  const at = (id) => document.getElementById(id);
  const list = at("pairs-list"), told = at("told"), back = at("back"), on = at("on");
  const fields = { s: at("by-source"), r: at("by-rejected"), c: at("by-chosen"), v: at("by-verified") };
  const search = at("search");
  const LABELS = { s: "source", r: "rejected", c: "chosen", v: "verified" };
  let found = rows, first = 0;

  const make = (tag, classes, text) => {
    const node = document.createElement(tag);
    if (classes) node.className = classes;
    if (text !== undefined) { node.textContent = text; node.dir = "auto"; }
    return node;
  };

  const fill = () => {
    for (const [key, field] of Object.entries(fields)) {
      const counts = new Map();
      for (const row of rows) counts.set(row[key], (counts.get(row[key]) || 0) + 1);
      field.append(new Option(`any ${LABELS[key]}`, ""));
      for (const [name, count] of [...counts].sort((a, b) => b[1] - a[1])) {
        field.append(new Option(`${name} (${count.toLocaleString("en")})`, name));
      }
    }
  };

  const side = (row, key, title, kind) => {
    const box = make("div", `side ${kind}`);
    box.append(make("h4", "", `${title}: ${kind === "good" ? row.c : row.r}`));
    const cut = row.cut.includes(key === "ch" ? "c" : "r");
    const text = make("pre", "", row[key] + (cut ? " \u2026" : ""));
    text.tabIndex = 0;
    box.append(text);
    return box;
  };

  const votes = (row) => {
    const box = make("ul", "votes");
    for (const [teacher, mark, operation] of row.votes) {
      const kind = mark === "+" ? "yes" : mark === "-" ? "no" : "out";
      const said = kind === "yes" ? `\u2713 ${operation}` : kind === "no" ? `\u2717 ${operation}` : `no vote: ${mark}`;
      box.append(make("li", kind, `${teacher} ${said}`));
    }
    return box;
  };

  const card = (row) => {
    const box = make("article", "pair");
    const head = make("header");
    const title = make("h3");
    title.append(make("span", "", row.c), " over ", make("s", "", row.r));
    head.append(title, make("span", `tag src k-${row.s}`, row.s));
    if (row.v !== "none") head.append(make("span", "tag", `verified: ${row.v}`));
    if (row.sim) head.append(make("span", "tag", "simulated"));
    head.append(make("span", "tag", row.p));
    box.append(head, make("p", "id", `${row.id} \u00b7 agent ${row.m}${row.usd ? ` \u00b7 $${row.usd}` : ""}`));
    const sides = make("div", "sides");
    sides.append(side(row, "rj", "Rejected, what the agent did", "bad"), side(row, "ch", "Chosen", "good"));
    box.append(sides, make("p", "why", row.why));
    if (row.votes.length) box.append(votes(row));
    const context = make("details", "ctx");
    context.append(make("summary", "", "What stood before"));
    const text = make("pre", "", row.ctx);
    text.tabIndex = 0;
    context.append(text);
    box.append(context);
    return box;
  };

  const draw = () => {
    list.replaceChildren(...found.slice(first, first + PAGE).map(card));
    const last = Math.min(first + PAGE, found.length);
    told.textContent = found.length
      ? `${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${found.length.toLocaleString("en")}`
      : "no pair fits";
    back.disabled = first === 0;
    on.disabled = last >= found.length;
  };

  const texts = rows.map(() => "");
  const text = (row, index) => texts[index] ||= [
    row.id, row.p, row.m, row.why, row.ch, row.rj, row.ctx, ...row.votes.map((vote) => vote.join(" ")),
  ].join("\n").toLowerCase();

  const sift = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = Object.entries(fields).filter(([, field]) => field.value);
    found = rows.filter((row, index) =>
      wanted.every(([key, field]) => row[key] === field.value) &&
      words.every((word) => text(row, index).includes(word)));
    first = 0;
    draw();
  };

  const turn = (step) => {
    first = Math.max(0, first + step * PAGE);
    draw();
    at("pairs").scrollIntoView();
  };

  fill();
  draw();
  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(sift, 120); });
  for (const field of Object.values(fields)) field.addEventListener("change", sift);
  back.addEventListener("click", () => turn(-1));
  on.addEventListener("click", () => turn(1));
  at("clear").addEventListener("click", () => {
    search.value = "";
    for (const field of Object.values(fields)) field.value = "";
    sift();
    search.focus();
  });
  for (const cell of document.querySelectorAll("button[data-rejected]")) {
    cell.addEventListener("click", () => {
      fields.r.value = cell.dataset.rejected;
      fields.c.value = cell.dataset.chosen;
      sift();
      at("pairs").scrollIntoView();
      fields.r.focus({ preventScroll: true });
    });
  }
})();
