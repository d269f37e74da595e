"use strict";
// Everything shown of a session goes through textContent; nothing here is ever read as HTML.
(async () => {
  const ROW = 54, OPEN = 3, FOLDED = 14, LCS_CELLS = 4e6, LINE_CELLS = 4e4, ALIKE = 0.35;
  const at = (id) => document.getElementById(id);
  const TITLES = JSON.parse(at("by-source").dataset.titles); // what label sources are called
  const titled = (source) => TITLES[source] || source;
  const number = (value) => value.toLocaleString("en");

  const make = (tag, classes, text) => {
    const node = document.createElement(tag);
    if (classes) node.className = classes;
    if (text !== undefined) { node.textContent = text; node.dir = "auto"; }
    return node;
  };

  const unpack = async (packed) => {
    const signs = atob(packed), bytes = new Uint8Array(signs.length);
    for (let index = 0; index < signs.length; index++) bytes[index] = signs.charCodeAt(index);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  const lines = (text) => {
    const found = [];
    for (let from = 0; from <= text.length;) {
      const end = text.indexOf("\n", from);
      found.push([from, end < 0 ? text.length : end]);
      if (end < 0) break;
      from = end + 1;
    }
    return found;
  };

  // --- What differs -------------------------------------------------------------------------------

  const words = (text) => text.match(/[\p{L}\p{N}_]+|\n|[^\S\n]+|[^\p{L}\p{N}_\s]/gu) || [];
  const isWord = (token) => /[\p{L}\p{N}_]/u.test(token);

  // For each token whether the other text has it too, by a longest common subsequence.
  const common = (one, other) => {
    const inOne = new Uint8Array(one.length), inOther = new Uint8Array(other.length);
    let head = 0, tail = 0;
    while (head < one.length && head < other.length && one[head] === other[head]) head++;
    const most = Math.min(one.length, other.length) - head;
    while (tail < most && one[one.length - 1 - tail] === other[other.length - 1 - tail]) tail++;
    inOne.fill(1, 0, head).fill(1, one.length - tail);
    inOther.fill(1, 0, head).fill(1, other.length - tail);
    const rows = one.length - head - tail, columns = other.length - head - tail, wide = columns + 1;
    if (!rows || !columns || rows * columns > LCS_CELLS) return [inOne, inOther];
    const longest = new Uint16Array((rows + 1) * wide);
    for (let i = rows - 1; i >= 0; i--) {
      for (let j = columns - 1; j >= 0; j--) {
        longest[i * wide + j] = one[head + i] === other[head + j]
          ? longest[(i + 1) * wide + j + 1] + 1
          : Math.max(longest[(i + 1) * wide + j], longest[i * wide + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < rows && j < columns;) {
      if (one[head + i] === other[head + j]) { inOne[head + i++] = 1; inOther[head + j++] = 1; }
      else if (longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]) i++;
      else j++;
    }
    return [inOne, inOther];
  };

  // Ranges of characters that the other text lacks; blanks and signs between two of them join them.
  const lacking = (tokens, inOther) => {
    const ranges = [];
    let place = 0, gap = "";
    tokens.forEach((token, index) => {
      const last = ranges[ranges.length - 1];
      if (inOther[index]) gap += token;
      else if (last && last[1] + gap.length === place && !isWord(gap) && gap.length < 4 && !gap.includes("\n")) {
        last[1] = place + token.length;
        gap = "";
      } else { ranges.push([place, place + token.length]); gap = ""; }
      place += token.length;
    });
    return ranges;
  };

  // How alike two lines are, 0 to 1, by the words in both.
  const likeness = (one, other) => {
    const left = new Map();
    for (const word of one) if (isWord(word)) left.set(word, (left.get(word) || 0) + 1);
    let both = 0, all = [...left.values()].reduce((sum, count) => sum + count, 0);
    for (const word of other) {
      if (!isWord(word)) continue;
      all++;
      if (left.get(word)) { both += 2; left.set(word, left.get(word) - 1); }
    }
    return all ? both / all : 0;
  };

  // For each line of one text the line of the other that it is, or that it is a change of; in order, -1 for none.
  const paired = (one, other) => {
    const found = new Array(one.length).fill(-1);
    let head = 0, tail = 0;
    const most = Math.min(one.length, other.length);
    while (head < most && one[head] === other[head]) { found[head] = head; head++; }
    while (tail < most - head && one[one.length - 1 - tail] === other[other.length - 1 - tail]) {
      found[one.length - 1 - tail] = other.length - 1 - tail;
      tail++;
    }
    const rows = one.length - head - tail, columns = other.length - head - tail, wide = columns + 1;
    if (!rows || !columns || rows * columns > LINE_CELLS) return found;
    const [x, y] = [[one, rows], [other, columns]].map(([all, count]) => all.slice(head, head + count).map(words));
    const worth = (i, j) => {
      if (one[head + i] === other[head + j]) return x[i].some(isWord) ? 2 : 0.1;
      const alike = likeness(x[i], y[j]);
      return alike < ALIKE ? 0 : alike;
    };
    const own = new Float64Array(rows * columns), best = new Float64Array((rows + 1) * wide);
    for (let i = rows - 1; i >= 0; i--) {
      for (let j = columns - 1; j >= 0; j--) {
        const value = own[i * columns + j] = worth(i, j);
        best[i * wide + j] = Math.max(
          value && value + best[(i + 1) * wide + j + 1], best[(i + 1) * wide + j], best[i * wide + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < rows && j < columns;) {
      const [value, here] = [own[i * columns + j], best[i * wide + j]];
      if (value && here === value + best[(i + 1) * wide + j + 1]) found[head + i++] = head + j++;
      else if (here === best[(i + 1) * wide + j]) i++;
      else j++;
    }
    return found;
  };

  // The ranges that differ in both texts, line by line; none where the texts are so unlike that all of it differs.
  const differ = (one, other) => {
    if (one === other) return { same: true, one: [], other: [] };
    const texts = [one, other], all = texts.map(lines), ranges = [[], []];
    const parts = all.map((each, which) => each.map(([from, to]) => texts[which].slice(from, to)));
    const [there, back] = [paired(...parts), new Array(parts[1].length).fill(-1)];
    there.forEach((j, i) => { if (j >= 0) back[j] = i; });
    let size = 0, both = 0;
    const count = (tokens, which) => tokens.forEach((token, index) => {
      if (!isWord(token)) return;
      size += token.length;
      if (which[index]) both += token.length;
    });
    [there, back].forEach((partners, which) => partners.forEach((partner, index) => {
      const [own, [from, to]] = [words(parts[which][index]), all[which][index]];
      const against = partner < 0 ? [] : words(parts[1 - which][partner]);
      const [known] = which ? common(against, own).reverse() : common(own, against);
      count(own, known);
      if (partner < 0) { if (from < to) ranges[which].push([from + parts[which][index].search(/\S|$/), to]); }
      else for (const [start, end] of lacking(own, known)) ranges[which].push([from + start, from + end]);
    }));
    if (both < ALIKE * size) return { same: false, unlike: true, one: [], other: [] };
    const seen = ranges.map((found, which) => found.filter(([from, to]) => texts[which].slice(from, to).trim()));
    const [shownOne, shownOther] = seen[0].length + seen[1].length ? seen : ranges;
    return { same: false, one: shownOne, other: shownOther };
  };

  // --- Text with colours --------------------------------------------------------------------------

  const TOKENS = new RegExp([
    String.raw`((?<=^|\s)#[^\n]*|(?<=^[ \t]*|[;{},][ \t]+)\/\/[^\n]*)`, // `a // b` divides in Python
    String.raw`("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')`,
    String.raw`\b(def|class|return|if|elif|else|for|while|import|from|as|with|try|except|raise|in|not|and|or|is|None` +
      "|True|False|lambda|yield|async|await|function|const|let|var|new|export|null|true|false|fn|pub|struct|match" +
      String.raw`|assert|then|fi|do|done)\b`,
    String.raw`\b(\d+(?:\.\d+)?)\b`,
  ].join("|"), "gm");
  const KINDS = ["", "t-note", "t-text", "t-word", "t-number"];

  const codeLayer = (text) => {
    const layer = [];
    for (const match of text.matchAll(TOKENS)) {
      const kind = KINDS[match.findIndex((group, index) => index && group !== undefined)];
      layer.push([match.index, match.index + match[0].length, kind]);
    }
    return layer;
  };

  // A path may break behind each slash.
  const breakable = (text) => text.split(/(?<=\/)/).flatMap((part, index) =>
    index ? [document.createElement("wbr"), part] : [part]);

  // Write a part of a text into a node; each layer is ranges in order, with a class for what they cover.
  const paint = (node, text, layers, start = 0, end = text.length) => {
    const cuts = new Set([start, end]);
    for (const layer of layers) {
      for (const [from, to] of layer) {
        if (from > start && from < end) cuts.add(from);
        if (to > start && to < end) cuts.add(to);
      }
    }
    const places = [...cuts].sort((a, b) => a - b), next = layers.map(() => 0);
    for (let index = 0; index + 1 < places.length; index++) {
      const [from, to] = [places[index], places[index + 1]];
      const classes = [];
      layers.forEach((layer, which) => {
        while (next[which] < layer.length && layer[next[which]][1] <= from) next[which]++;
        const range = layer[next[which]];
        if (range && range[0] <= from) classes.push(range[2]);
      });
      const shown = text.length < 300 ? breakable(text.slice(from, to)) : [text.slice(from, to)];
      if (!classes.length) node.append(...shown);
      else {
        const part = document.createElement(classes.includes("x") ? "mark" : "span");
        part.className = classes.join(" ");
        part.append(...shown);
        node.append(part);
      }
    }
    return node;
  };

  const marked = (ranges) => ranges.map(([from, to]) => [from, to, "x"]);
  const isPatch = (text) => /^(@@ |diff --git |\+\+\+ |\*\*\* (Begin|Update))/m.test(text);
  const CODE = /^(command|cmd|code|script|patch|diff|input|pattern|query|sql|file_text|content|(old|new)_?(str|string|text)?|edits|replace|search)$/;

  const line = (kind, sign) => {
    const node = make("span", `line ${kind}`);
    if (sign) { const mark = make("i", "", sign); mark.setAttribute("aria-hidden", "true"); node.append(mark); }
    return node;
  };

  const scrolled = (node) => { node.tabIndex = 0; node.dir = "auto"; return node; };

  // A text of code, of a patch, or of anything else.
  const block = (text, ranges, code) => {
    const box = scrolled(make("pre", code ? "code" : ""));
    if (!isPatch(text)) return paint(box, text, [marked(ranges), code ? codeLayer(text) : []]);
    for (const [from, to] of lines(text)) {
      const kind = { "+": "add", "-": "del", "@": "at" }[text[from]] || "";
      box.append(paint(line(kind), text, [marked(ranges)], from, to), "\n");
    }
    box.classList.add("patch");
    return box;
  };

  // An edit as a diff of its old and new text; ranges mark what the other side has not.
  const edit = (before, after, ranges) => {
    const box = scrolled(make("pre", "code patch"));
    const [x, y] = [lines(before), lines(after)];
    const [inX, inY] = common(x.map(([a, b]) => before.slice(a, b)), y.map(([a, b]) => after.slice(a, b)));
    const layers = [[marked(ranges[0]), codeLayer(before)], [marked(ranges[1]), codeLayer(after)]];
    const put = (kind, sign, text, layer, [from, to]) => box.append(paint(line(kind, sign), text, layer, from, to), "\n");
    for (let i = 0, j = 0; i < x.length || j < y.length;) {
      if (i < x.length && !inX[i]) put("del", "\u2212", before, layers[0], x[i++]);
      else if (j < y.length && !inY[j]) put("add", "+", after, layers[1], y[j++]);
      else { put("", " ", after, layers[1], y[j]); i++; j++; }
    }
    return box;
  };

  // --- A call -------------------------------------------------------------------------------------

  const EDITS = [["old_string", "new_string"], ["old_str", "new_str"], ["old_text", "new_text"], ["search", "replace"], ["old", "new"]];
  const valueOf = (call, key) => (call && Array.isArray(call[1]) ? (call[1].find(([name]) => name === key) || [])[1] : undefined);

  const compare = (own, other, first) => {
    if (other === undefined) return { state: "alone", ranges: [] };
    const found = first ? differ(own, other) : differ(other, own);
    const state = found.same ? "same" : found.unlike ? "unlike" : "differs";
    return { state, ranges: first ? found.one : found.other };
  };

  const TOLD = { alone: "only here", unlike: "differs", differs: "differs", same: "same" };

  const argument = (name, state, value, short) => {
    const box = make("div", `arg ${state}${short ? " short" : ""}`);
    const label = make("span", "key", name);
    if (state && state !== "same") label.append(make("em", "", TOLD[state]));
    box.append(label, value);
    return box;
  };

  // The call of one side; without `other` (a call of the context) nothing is marked.
  const callBox = (call, other, first, comparing) => {
    const box = make("div", "call");
    const name = make("div", "tool-name");
    const differs = comparing && other && other[0] !== call[0];
    name.append(make(differs ? "mark" : "span", differs ? "x" : "", call[0]));
    if (comparing && !other) name.append(make("em", "", TOLD.alone));
    comparing = comparing && Boolean(other);
    box.append(name);
    if (!Array.isArray(call[1])) {
      const told = comparing ? compare(call[1], other && typeof other[1] === "string" ? other[1] : undefined, first) : { state: "", ranges: [] };
      box.append(argument("arguments", told.state, block(call[1], told.ranges, true)));
      return box;
    }
    const done = new Set();
    for (const [key, value] of call[1]) {
      if (done.has(key)) continue;
      const against = (text, of) => comparing ? compare(text, valueOf(other, of), first) : { state: "", ranges: [] };
      const pair = EDITS.find((each) => each.includes(key) && each.every((one) => valueOf(call, one) !== undefined));
      if (pair) {
        const [before, after] = pair.map((one) => valueOf(call, one));
        const told = [against(before, pair[0]), against(after, pair[1])];
        const state = told.map((each) => each.state).find((each) => each !== "same") || told[0].state;
        box.append(argument(`${pair[0]} \u2192 ${pair[1]}`, state, edit(before, after, told.map((each) => each.ranges))));
        pair.forEach((one) => done.add(one));
        continue;
      }
      const told = against(value, key);
      const short = !value.includes("\n") && value.length < 160;
      box.append(argument(key, told.state, block(value, told.ranges, CODE.test(key) || !short), short));
    }
    return box;
  };

  const callsOf = (messages) => messages.flatMap((message) => message.calls || []);
  const saidIn = (messages) => messages.map((message) => message.text || "").filter(Boolean).join("\n\n");

  // For each call of one side the call of the other that it is compared with: the most alike first.
  const matched = (calls, there) => {
    const found = calls.map(() => undefined), free = new Set(there.keys());
    const alike = (one, other) => {
      if (JSON.stringify(one) === JSON.stringify(other)) return 3;
      if (one[0] !== other[0]) return 0;
      return 1 + likeness(words(JSON.stringify(one[1])), words(JSON.stringify(other[1])));
    };
    const all = calls.flatMap((one, i) => there.map((other, j) => [alike(one, other), i, j]));
    all.sort((a, b) => b[0] - a[0] || (a[1] + a[2]) - (b[1] + b[2]));
    for (const [, i, j] of all) if (!found[i] && free.delete(j)) found[i] = there[j];
    return found;
  };

  const side = (pair, first) => {
    const [own, other] = first ? [pair.rejected, pair.chosen] : [pair.chosen, pair.rejected];
    const box = make("section", `side ${first ? "bad" : "good"}`);
    const title = make("h4");
    title.append(make("span", "", first ? "Rejected" : "Chosen"), make("b", "", first ? pair.did : pair.chose));
    box.append(title);
    const [said, saidThere] = [saidIn(own), saidIn(other)];
    if (said) {
      const told = saidThere ? compare(said, saidThere, first) : { ranges: [] };
      box.append(paint(scrolled(make("div", "said")), said, [marked(told.ranges)]));
    }
    const [calls, callsThere] = [callsOf(own), callsOf(other)];
    const partners = matched(calls, callsThere);
    calls.forEach((call, index) => box.append(callBox(call, partners[index], first, callsThere.length > 0)));
    if (!calls.length) box.append(make("p", "quiet", "No tool call: the turn ends here."));
    return box;
  };

  // One sentence on what differs.
  const difference = (pair) => {
    const [bad, good] = [callsOf(pair.rejected), callsOf(pair.chosen)];
    const names = (calls) => [...new Set(calls.map((call) => call[0]))].map((name) => {
      const times = calls.filter((call) => call[0] === name).length;
      return times > 1 ? `${name} \u00d7${times}` : name;
    }).join(", ");
    if (!bad.length && !good.length) return "Neither side calls a tool; the words differ.";
    if (!good.length) return `Ends the turn instead of calling ${names(bad)}.`;
    if (!bad.length) return `Calls ${names(good)} instead of ending the turn.`;
    if (names(bad) !== names(good)) return `Calls ${names(good)} instead of ${names(bad)}.`;
    const keys = new Set();
    good.forEach((call, index) => {
      const other = bad[index];
      if (!Array.isArray(call[1]) || !Array.isArray(other[1])) {
        if (JSON.stringify(call[1]) !== JSON.stringify(other[1])) keys.add("arguments");
        return;
      }
      for (const [key] of [...call[1], ...other[1]]) if (valueOf(call, key) !== valueOf(other, key)) keys.add(key);
    });
    return keys.size ? `Same tool; ${[...keys].join(", ")} ${keys.size > 1 ? "differ" : "differs"}.` : "The same call; the words differ.";
  };

  // --- The context --------------------------------------------------------------------------------

  const ROLES = { system: "System", user: "User", assistant: "Agent", tool: "Output" };

  const message = (each, open) => {
    const box = make("div", `turn ${each.role}`);
    box.append(make("span", "role", each.role === "tool" && each.name ? `Output of ${each.name}` : ROLES[each.role] || each.role));
    const text = each.text || "";
    if (text) {
      const content = each.role === "tool" ? block(text, [], false) : scrolled(make("div", "said", text));
      const count = lines(text).length;
      if (open || (count <= 4 && text.length < 400)) box.append(content);
      else {
        const fold = make("details");
        const label = make("summary", "", text.trim().slice(0, 110).split("\n")[0]);
        label.append(make("small", "", ` ${number(count)} lines`));
        fold.append(label, content);
        box.append(fold);
      }
    }
    for (const call of each.calls || []) box.append(callBox(call));
    if (!text && !(each.calls || []).length) box.append(make("p", "quiet", "empty"));
    return box;
  };

  const conversation = (pair) => {
    const box = make("section", "context");
    const items = pair.context.flatMap(([from, count]) =>
      from < 0 ? [count] : content.messages.slice(from, from + count));
    const all = items.reduce((sum, each) => sum + (typeof each === "number" ? each : 1), 0);
    box.append(make("h4", "", "What the agent saw"));
    const put = (node, each, open) => node.append(typeof each === "number"
      ? make("p", "gap", `${number(each)} messages are not in this page`) : message(each, open));
    const early = items.slice(0, -OPEN);
    if (early.length) {
      const before = all - Math.min(OPEN, items.length);
      const fold = make("details", "earlier");
      fold.append(make("summary", "", before > 1 ? `The ${number(before)} messages before` : "The message before"));
      fold.addEventListener("toggle", () => {
        if (fold.open && fold.children.length === 1) early.forEach((each) => put(fold, each, each.role === "user"));
      });
      box.append(fold);
    }
    items.slice(-OPEN).forEach((each) => put(box, each, each.role !== "system" && lines(each.text || "").length <= 400));
    return box;
  };

  // --- A pair -------------------------------------------------------------------------------------

  const votes = (pair) => {
    const box = make("ul", "votes");
    for (const [teacher, mark, operation] of pair.votes) {
      const kind = mark === "+" ? "yes" : mark === "-" ? "no" : "out";
      const said = { yes: `\u2713 ${operation}`, no: `\u2717 ${operation}`, out: `no vote: ${mark}` }[kind];
      const item = make("li", kind);
      item.append(make("b", "", teacher), ` ${said}`);
      box.append(item);
    }
    return box;
  };

  const facts = (pair) => {
    const box = make("dl", "facts");
    const put = (name, value) => {
      const row = make("div");
      const told = make("dd");
      told.append(typeof value === "string" ? make("span", "", value) : value);
      row.append(make("dt", "", name), told);
      box.append(row);
    };
    put("agent", pair.agent);
    put("from", pair.place);
    put("verified", pair.verified);
    if (pair.usd) put("cost", `$${pair.usd}`);
    const all = make("button", "plain", pair.trace);
    all.type = "button";
    all.title = "Show the pairs of this trace";
    all.addEventListener("click", () => { fields.trace.value = pair.trace; sift(pair.id); });
    put("trace", all);
    const link = make("a", "", pair.id);
    link.href = `#pair-${pair.id}`;
    put("link", link);
    return box;
  };

  const show = (pair) => {
    const box = at("pair");
    if (!pair) {
      box.replaceChildren(make("p", "quiet", "No pair fits. Clear the filters to see all."));
      return;
    }
    const head = make("header");
    const title = make("h3");
    title.append(make("span", "chose", pair.chose), " over ", make("span", "did", pair.did));
    head.append(title, make("span", "tag", titled(pair.source)));
    if (pair.agreement !== "no votes") head.append(make("span", "tag", pair.agreement));
    if (pair.simulated) head.append(make("span", "tag", "simulated"));
    const nodes = [head];
    if (!content) nodes.push(make("p", "quiet", "Unpacking the texts \u2026"));
    else {
      const sides = make("div", "sides");
      sides.append(side(pair, true), side(pair, false));
      nodes.push(make("p", "sum", difference(pair)), sides);
    }
    if (pair.why) nodes.push(make("p", "why", pair.why));
    if (pair.votes.length) nodes.push(votes(pair));
    if (content) nodes.push(conversation(pair));
    nodes.push(facts(pair));
    box.replaceChildren(...nodes);
  };

  // --- The list -----------------------------------------------------------------------------------

  const list = at("list"), told = at("told"), place = at("place"), search = at("search");
  const KEYS = ["did", "chose", "source", "agreement", "decides", "verified", "trace"];
  const fields = Object.fromEntries(KEYS.map((key) => [key, at(`by-${key}`)]));
  const DECIDES = { any: "a side decides", chosen: "the chosen side decides", neither: "neither side decides" };
  const decides = { any: (pair) => pair.decides > 0, chosen: (pair) => pair.decides === 2, neither: (pair) => !pair.decides };
  let content, rows, found = [], here = 0;

  const fill = () => {
    for (const [key, field] of Object.entries(fields)) {
      field.append(new Option("any", ""));
      if (key === "decides") {
        for (const [name, text] of Object.entries(DECIDES)) {
          field.append(new Option(`${text} (${number(rows.filter(decides[name]).length)})`, name));
        }
        continue;
      }
      const counts = new Map();
      for (const row of rows) counts.set(row[key], (counts.get(row[key]) || 0) + 1);
      for (const [name, count] of [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))) {
        field.append(new Option(`${key === "source" ? titled(name) : name} (${number(count)})`, name));
      }
    }
  };

  // Only rows in sight are in the document.
  const drawList = () => {
    const tall = list.clientHeight;
    if (!tall) return;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
    const last = Math.min(found.length, Math.ceil((list.scrollTop + tall) / ROW) + 4);
    const inner = make("div");
    inner.setAttribute("role", "presentation");
    inner.style.height = `${found.length * ROW}px`;
    for (let index = first; index < last; index++) {
      const row = found[index];
      const item = make("div", "entry");
      item.id = `entry-${index}`;
      item.dataset.index = index;
      item.style.top = `${index * ROW}px`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", index === here);
      item.setAttribute("aria-posinset", index + 1);
      item.setAttribute("aria-setsize", found.length);
      const title = make("span", "ops");
      title.append(make("b", "", row.chose), ` over ${row.did}`);
      item.append(title, make("small", "", `${row.agreement === "no votes" ? titled(row.source) : row.agreement} \u00b7 ${row.place}`));
      inner.append(item);
    }
    list.replaceChildren(inner);
    if (found.length) list.setAttribute("aria-activedescendant", `entry-${here}`);
    else list.removeAttribute("aria-activedescendant");
  };

  const go = (index, quiet) => {
    here = Math.max(0, Math.min(found.length - 1, index));
    const pair = found[here];
    place.textContent = pair ? `${number(here + 1)} of ${number(found.length)}` : "";
    at("back").disabled = here <= 0;
    at("on").disabled = here >= found.length - 1;
    show(pair);
    const top = here * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    drawList();
    if (!pair || quiet) return;
    history.replaceState(null, "", `#pair-${pair.id}`);
    const reader = document.querySelector(".reader");
    if (reader.getBoundingClientRect().top < 0) reader.scrollIntoView();
  };

  // All texts in a value, without the names of its keys and without roles.
  const leaves = (value) => value && typeof value === "object"
    ? Object.entries(value).map(([key, each]) => key === "role" ? "" : leaves(each)).join("\n")
    : String(value).toLowerCase();
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, leaves({ ...row, context: "" }));
    return texts.get(row);
  };
  let lowered;
  // For a word, how many of the messages up to each one hold it.
  const messagesWith = (word) => {
    if (!content) return [];
    lowered ||= content.messages.map(leaves);
    const sums = new Uint32Array(lowered.length + 1);
    lowered.forEach((text, index) => { sums[index + 1] = sums[index] + text.includes(word); });
    return sums;
  };

  const sift = (keep) => {
    const wanted = Object.entries(fields).filter(([, field]) => field.value);
    const needles = search.value.toLowerCase().split(/\s+/).filter(Boolean).map((word) => [word, messagesWith(word)]);
    found = rows.filter((row) =>
      wanted.every(([key, field]) => key === "decides" ? decides[field.value](row) : row[key] === field.value) &&
      needles.every(([word, sums]) => textOf(row).includes(word) ||
        (row.context || []).some(([from, count]) => from >= 0 && sums[from + count] > sums[from])));
    told.textContent = found.length === rows.length
      ? `${number(rows.length)} pairs` : `${number(found.length)} of ${number(rows.length)} pairs`;
    at("clear").hidden = !wanted.length && !needles.length;
    const marked = wanted.length ? ` (${wanted.length})` : "";
    document.querySelector("#filters > summary").textContent = `Filters${marked}`;
    list.scrollTop = 0;
    go(Math.max(0, found.findIndex((row) => row.id === keep)), true);
  };

  const clear = () => {
    search.value = "";
    for (const field of Object.values(fields)) field.value = "";
  };

  const follow = () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch { /* a stray percent sign */ }
    if (!name.startsWith("pair-")) return false;
    const id = name.slice(5), index = rows.findIndex((row) => row.id === id);
    if (index < 0) { told.textContent = "The linked pair is not in this page."; return false; }
    if (!found.includes(rows[index])) { clear(); sift(); }
    go(found.indexOf(rows[index]), true);
    at("pairs").scrollIntoView();
    return true;
  };

  const read = async (id) => {
    try {
      return await unpack(at(id).textContent);
    } catch {
      at("failed").hidden = false;
      told.textContent = "";
      return undefined;
    }
  };

  const index = await read("rows");
  if (!index) return;
  rows = index.rows;
  at("filters").open = matchMedia("(min-width: 900px)").matches;
  fill();
  sift();
  follow();

  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(sift, 120); });
  for (const field of Object.values(fields)) field.addEventListener("change", () => sift());
  at("clear").addEventListener("click", () => { clear(); sift(); search.focus(); });
  at("back").addEventListener("click", () => go(here - 1));
  at("on").addEventListener("click", () => go(here + 1));
  list.addEventListener("scroll", drawList, { passive: true });
  addEventListener("resize", drawList);
  addEventListener("hashchange", follow);
  list.addEventListener("click", (event) => {
    const item = event.target.closest(".entry");
    if (item) go(Number(item.dataset.index));
  });
  for (const cell of document.querySelectorAll("button[data-rejected]")) {
    cell.addEventListener("click", () => {
      clear();
      fields.did.value = cell.dataset.rejected;
      fields.chose.value = cell.dataset.chosen;
      at("filters").open = true;
      sift();
      at("pairs").scrollIntoView();
      fields.did.focus({ preventScroll: true });
    });
  }
  const help = at("help");
  at("help-open").addEventListener("click", () => help.showModal());
  at("help-close").addEventListener("click", () => help.close());
  const actions = {
    j: () => go(here + 1), k: () => go(here - 1), ArrowRight: () => go(here + 1), ArrowLeft: () => go(here - 1),
    "/": () => search.focus(), "?": () => help.showModal(),
    o: () => { const fold = document.querySelector(".earlier"); if (fold) fold.open = !fold.open; },
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const inList = event.target === list && { ArrowDown: actions.j, ArrowUp: actions.k, Home: () => go(0), End: () => go(found.length - 1) }[event.key];
    const act = inList || actions[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  document.documentElement.dataset.ready = Math.round(performance.now());

  // The texts stand behind this script, so that the list can be used before they are loaded.
  if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
  content = await read("texts");
  if (!content) return;
  rows.forEach((row, place) => { [row.context, row.chosen, row.rejected] = content.texts[place]; });
  texts.clear();
  if (search.value) sift((found[here] || {}).id);
  else show(found[here]);
  document.documentElement.dataset.whole = Math.round(performance.now());
})();
