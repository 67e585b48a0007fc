"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const data = facts.columns;
  const total = data.id.length;
  const name = i => data.name ? data.name[i] : String(data.id[i]);
  // long names often differ at their end alone
  const short = text => { const all = [...text]; return all.length > 22 ? [...all.slice(0, 9), "…", ...all.slice(-10)].join("") : text; };
  const label = c => c < 0 ? "abstains" : facts.classes[c] ?? String(c);
  const truth = i => data.truth[i] < 0 ? "unknown" : label(data.truth[i]);
  const $ = id => document.getElementById(id);
  const make = (tag, text, cls) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (cls) node.className = cls;
    return node;
  };

  const far = n => n < 0 ? "–" : String(n);
  const alone = (kind, i) => data.all[kind][i] && data[kind][i] ? `all ${data[kind][i]}` : far(data[kind][i]);
  const columns = [
    {key: "id", title: facts.unit, text: name, words: !!data.name, value: i => data.name ? data.name[i] : data.id[i]},
    {key: "label", title: "label", text: i => label(data.label[i]), words: true, value: i => data.label[i]},
    {key: "truth", title: "truth", text: i => truth(i), words: true, value: i => data.truth[i]},
    {key: "size", title: "K", text: i => data.size[i] < 0 ? "–" : String(data.size[i]), value: i => data.size[i]},
    {key: "adds", title: "adds", text: i => alone("adds", i), value: i => data.adds[i]},
    {key: "deletes", title: "deletes", text: i => alone("deletes", i), value: i => data.deletes[i]},
    {key: "attacked", title: "attack found", text: i => data.attacked[i] < 0 ? "none" : String(data.attacked[i]),
     value: i => data.attacked[i] < 0 ? Infinity : data.attacked[i]},
    ...facts.evidence.map(more => ({title: more.title, value: i => more.values[i], words: !!more.names,
      text: i => more.names ? more.names[more.values[i]] : more.digits ? more.values[i].toFixed(more.digits) : String(more.values[i])})),
    {key: "degree", title: facts.degreeName, text: i => String(data.degree[i]), value: i => data.degree[i]},
  ].filter(column => !column.key || data[column.key]);

  const right = i => data.truth && data.label[i] >= 0 && data.label[i] === data.truth[i];
  const filters = [
    ["all " + facts.unit + "s", () => true],
    ["abstaining", i => data.size[i] < 0],
    ["certified (K ≥ 1)", i => data.size[i] >= 1],
    ["proven but fragile (K = 0)", i => data.size[i] === 0],
  ];
  if (data.truth) {
    filters.push(["right label", right], ["wrong label", i => data.label[i] >= 0 && data.truth[i] >= 0 && !right(i)]);
  }
  for (const [title] of filters) $("filter").append(make("option", title));

  let sortBy = null, rising = true, shown = 25, chosen = 0, rows = [];
  const haystack = Array.from({length: total}, (_, i) =>
    [name(i), label(data.label[i]), data.truth ? truth(i) : ""].join(" ").toLowerCase());

  function select() {
    const wanted = $("search").value.trim().toLowerCase();
    const keep = filters[$("filter").selectedIndex][1];
    const exact = /^\d+$/.test(wanted);
    rows = [];
    for (let i = 0; i < total; i++) {
      const hit = !wanted || (exact ? name(i).startsWith(wanted) : haystack[i].includes(wanted));
      if (hit && keep(i)) rows.push(i);
    }
    if (sortBy) {
      const sign = rising ? 1 : -1;
      rows.sort((a, b) => {
        const x = sortBy.value(a), y = sortBy.value(b);
        const order = typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x < y ? -1 : x > y ? 1 : 0;
        return order * sign || a - b;
      });
    }
    draw();
  }

  const told = n => n.toLocaleString("en-US");
  const many = n => `${told(n)} ${facts.unit}${n === 1 ? "" : "s"}`;
  function draw() {
    const body = $("table").tBodies[0];
    body.replaceChildren(...rows.slice(0, shown).map(row));
    $("more").hidden = rows.length <= shown;
    $("more").textContent = `Show ${Math.min(200, rows.length - shown)} more`;
    $("rest").hidden = rows.length <= shown;
    $("rest").textContent = `${told(rows.length - shown)} more are in the page itself.`;
    $("found").textContent = rows.length === total ? many(total) : `${told(rows.length)} of ${many(total)}`;
  }

  function row(i) {
    const line = make("tr");
    line.dataset.i = i;
    if (i === chosen) line.className = "on";
    columns.forEach((column, place) => {
      const cell = make("td", undefined, column.words ? "words" : "");
      if (place === 0) {
        const button = make("button", short(column.text(i)));
        button.type = "button";
        button.title = column.text(i);
        button.setAttribute("aria-label", `Show ${facts.unit} ${name(i)}`);
        button.addEventListener("click", () => choose(i));
        cell.append(button);
      } else {
        cell.textContent = column.text(i);
        cell.title = column.text(i);
        if (column.key === "truth" && data.truth[i] >= 0 && data.label[i] >= 0 && !right(i)) cell.textContent += " ✗";
      }
      line.append(cell);
    });
    return line;
  }

  const box = $("table").parentElement;  // a phone cuts the table off where a column ends, and shows no bar
  const sideways = () => { $("sideways").hidden = box.scrollWidth <= box.clientWidth; };
  new ResizeObserver(sideways).observe(box);
  new ResizeObserver(sideways).observe($("table"));

  const heads = $("table").tHead.rows[0];
  for (const column of columns) {
    const head = make("th", undefined, column.words ? "words" : "");
    head.scope = "col";
    head.setAttribute("aria-sort", "none");
    const button = make("button", column.title);
    button.type = "button";
    button.addEventListener("click", () => {
      rising = sortBy === column ? !rising : true;
      sortBy = column;
      for (const other of heads.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      select();
    });
    head.append(button);
    heads.append(head);
  }

  $("table").tBodies[0].addEventListener("keydown", event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    const line = event.target.closest("tr");
    const next = step && line && (step > 0 ? line.nextElementSibling : line.previousElementSibling);
    if (next) { event.preventDefault(); next.querySelector("button").focus(); }
  });
  $("search").addEventListener("input", () => { shown = 25; select(); });
  $("filter").addEventListener("change", () => { shown = 25; select(); });
  $("more").addEventListener("click", () => { shown += 200; draw(); });
  let before = 0;  // paper has no button for more
  addEventListener("beforeprint", () => { before = shown; shown = Math.max(shown, 1000); draw(); });
  addEventListener("afterprint", () => { shown = before; draw(); });

  function sentence(i) {
    if (data.size[i] < 0) return `Nothing is promised about ${facts.unit} ${name(i)}. ${data.tally[i]}`;
    const named = label(data.label[i]);
    const attack = data.size[i] >= data.entries[i] ? "makes any change at all to it"
      : data.size[i] === 1 ? facts.attackOne : facts.attack.replace("{k}", data.size[i]);
    const proof = data.size[i] === 0
      ? `Its label ${named} is proven as long as nothing is changed; a single change ${facts.atOnce}.`
      : `${facts.assurance}: no attacker who ${attack} ${facts.outcome.replace("{label}", () => named)}.`;
    const wall = data.wall[i] ? " That covers losing every one of its links." : "";
    const kinds = data.adds ? ` Additions alone are covered up to ${far(data.adds[i])}, deletions alone up to ${far(data.deletes[i])}.` : "";
    const truth = data.truth && data.truth[i] >= 0 ? (right(i) ? " The label is right." : ` The label is wrong: the truth is ${label(data.truth[i])}.`) : "";
    const found = data.attacked && data.attacked[i] >= 0 ? ` An attack with ${data.attacked[i]} change${data.attacked[i] === 1 ? "" : "s"} was found.` : "";
    return `${proof}${kinds}${wall} ${data.tally[i]}${truth}${found}`;
  }

  const NS = "http://www.w3.org/2000/svg";
  const shape = (tag, attributes, text) => {
    const node = document.createElementNS(NS, tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const colour = c => c < 0 || c === undefined ? "var(--grey)" : `var(--c${c % 8})`;

  function disc(x, y, r, cls, fill, text, title) {
    const group = shape("g", {});
    const circle = shape("circle", {cx: x, cy: y, r, class: cls});
    circle.style.fill = fill;
    group.append(circle, shape("title", {}, title));
    if (text !== "") group.append(shape("text", {x, y: y + (r > 20 ? 6 : 4), class: r > 20 ? "big" : ""}, text));
    return group;
  }

  const line = (a, b, cls) => shape("line", {x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: cls});

  let drawn = [];  // classes in the picture
  const classKey = () => drawn.slice(0, 8).map(c => {
    const entry = make("li"), spot = make("i");
    spot.style.background = colour(c);
    entry.append(spot, label(c));
    return entry;
  });

  function egoPicture(i) {
    const picture = facts.picture, id = data.id[i], near = picture.near[id];
    if (!near) return ["", null];
    const svg = shape("svg", {viewBox: "0 0 360 330", role: "img", "aria-label": `the neighbourhood of ${facts.unit} ${name(i)}`});
    const places = new Map([[id, [180, 165]]]);
    near.forEach((v, n) => {
      const angle = 2 * Math.PI * n / near.length - Math.PI / 2;
      places.set(v, [180 + 88 * Math.cos(angle), 165 + 88 * Math.sin(angle)]);
    });
    const ring = [];
    for (const v of near) for (const w of picture.near[v] ?? []) if (!places.has(w) && !ring.includes(w) && ring.length < 36) ring.push(w);
    ring.forEach((w, n) => {
      const angle = 2 * Math.PI * (n + 0.5) / ring.length - Math.PI / 2;
      places.set(w, [180 + 150 * Math.cos(angle), 165 + 150 * Math.sin(angle)]);
    });
    const changed = picture.attack?.[i] ?? [], gained = changed.filter(v => !near.includes(v));
    gained.forEach((v, n) => {
      const angle = 2 * Math.PI * (n + 0.5) / Math.max(gained.length, 3) - Math.PI / 3;
      places.set(v, [180 + 122 * Math.cos(angle), 165 + 122 * Math.sin(angle)]);
    });
    for (const v of near) for (const w of picture.near[v] ?? []) {
      if (places.has(w) && w !== id && (v < w || !near.includes(w))) svg.append(line(places.get(v), places.get(w), "edge far"));
    }
    for (const v of near) svg.append(line(places.get(id), places.get(v), changed.includes(v) ? "edge lost" : "edge"));
    for (const v of gained) svg.append(line(places.get(id), places.get(v), "edge gained"));
    const say = v => { const c = picture.label[v]; return `${facts.unit} ${picture.names?.[v] ?? v}` + (c >= 0 ? `, label ${label(c)}` : ""); };
    for (const v of gained) svg.append(disc(...places.get(v), 9, "node", colour(picture.label[v]), "", `${say(v)}, a new link`));
    for (const w of ring) if (!gained.includes(w)) svg.append(disc(...places.get(w), 6, "node", colour(picture.label[w]), "", say(w)));
    const small = near.length > 14 ? 9 : 13;
    for (const v of near) svg.append(disc(...places.get(v), small, "node", colour(picture.label[v]), picture.label[v] >= 0 && small > 10 ? label(picture.label[v]).slice(0, 3) : "", say(v)));
    svg.append(disc(180, 165, 27, "node target", colour(data.label[i]), data.size[i] < 0 ? "?" : `K ${data.size[i]}`, `${say(id)}, K = ${data.size[i]}`));
    drawn = [...new Set([data.label[i], ...[...places.keys()].map(v => picture.label[v])])].filter(c => c >= 0).sort((a, b) => a - b);
    const more = picture.degree[id] - near.length;
    return [svg, `${facts.unit[0].toUpperCase()}${facts.unit.slice(1)} ${name(i)} in the middle, its ${picture.degree[id]} link${picture.degree[id] === 1 ? "" : "s"} around it`
      + (more > 0 ? ` (${more} not drawn)` : "") + "; small dots are two steps away." + attackNote(gained.length, changed.length - gained.length)];
  }

  const attackNote = (added, deleted) => added + deleted === 0 ? "" : ` A cheapest attack is drawn in orange: ${added} added`
    + ` (dashed), ${deleted} deleted (dotted).`;

  function spring(n, pairs) {
    const at = Array.from({length: n}, (_, k) => [Math.cos(2.4 * k) * Math.sqrt(k + 1), Math.sin(2.4 * k) * Math.sqrt(k + 1)]);
    for (let round = 0; round < 220; round++) {
      const push = at.map(() => [0, 0]), heat = 0.25 * (1 - round / 220);
      for (let a = 0; a < n; a++) for (let b = 0; b < a; b++) {
        const x = at[a][0] - at[b][0], y = at[a][1] - at[b][1], f = 1 / Math.max(x * x + y * y, 0.01);
        push[a][0] += x * f; push[a][1] += y * f; push[b][0] -= x * f; push[b][1] -= y * f;
      }
      for (let e = 0; e < pairs.length; e += 2) {
        const a = pairs[e], b = pairs[e + 1], x = at[a][0] - at[b][0], y = at[a][1] - at[b][1], f = Math.hypot(x, y);
        push[a][0] -= x * f; push[a][1] -= y * f; push[b][0] += x * f; push[b][1] += y * f;
      }
      for (let a = 0; a < n; a++) {
        const long = Math.hypot(...push[a]) || 1, step = Math.min(long, 1) * heat / long;
        at[a][0] += push[a][0] * step - at[a][0] * 0.002; at[a][1] += push[a][1] * step - at[a][1] * 0.002;
      }
    }
    return at;
  }

  function graphPicture(i) {
    const picture = facts.picture, pairs = picture.graphs[i], n = Math.min(picture.nodes[i], picture.largest);
    if (!pairs) return ["", null];
    const svg = shape("svg", {viewBox: "0 0 360 330", role: "img", "aria-label": `${facts.unit} ${name(i)}`});
    const at = spring(n, pairs), xs = at.map(p => p[0]), ys = at.map(p => p[1]);
    const low = [Math.min(...xs), Math.min(...ys)], wide = Math.max(Math.max(...xs) - low[0], Math.max(...ys) - low[1]) || 1;
    const place = at.map(p => [20 + 310 * (p[0] - low[0]) / wide, 10 + 310 * (p[1] - low[1]) / wide]);
    for (let e = 0; e < pairs.length; e += 2) svg.append(line(place[pairs[e]], place[pairs[e + 1]], "edge"));
    const changed = picture.attack?.[i] ?? [], has = (a, b) => { for (let e = 0; e < pairs.length; e += 2) if (pairs[e] === a && pairs[e + 1] === b) return true; return false; };
    let added = 0, deleted = 0;
    for (let e = 0; e < changed.length; e += 2) {
      const [a, b] = [Math.min(changed[e], changed[e + 1]), Math.max(changed[e], changed[e + 1])];
      const there = has(a, b);
      there ? deleted++ : added++;
      if (b < n) svg.append(line(place[a], place[b], there ? "edge lost" : "edge gained"));
    }
    place.forEach((p, v) => svg.append(disc(...p, n > 60 ? 4 : 7, "node", colour(data.label[i]), "", `node ${v}`)));
    return [svg, `${picture.nodes[i]} nodes, ${pairs.length / 2} edges` + (n < picture.nodes[i] ? `; the first ${n} nodes are drawn.` : ".") + attackNote(added, deleted)];
  }

  function choose(i) {
    chosen = i;
    drawn = [];
    for (const line of $("table").tBodies[0].rows) line.classList.toggle("on", Number(line.dataset.i) === i);
    $("chosen-title").textContent = `${facts.unit[0].toUpperCase()}${facts.unit.slice(1)} ${name(i)}: ` + (data.size[i] < 0 ? "no guarantee" : `K = ${data.size[i]}`);
    $("chosen-words").textContent = sentence(i);
    const [svg, note] = !facts.picture ? ["", null] : facts.picture.kind === "nodes" ? egoPicture(i) : graphPicture(i);
    $("picture").replaceChildren(svg);
    $("classes").replaceChildren(...classKey());
    $("classes").hidden = !svg || !drawn.length;
    $("picture-note").textContent = note ?? "";
    $("picture-note").hidden = !note;
  }

  const copy = $("copy");
  if (copy) copy.addEventListener("click", () => {
    const range = document.createRange();
    range.selectNodeContents($("command"));
    const marked = getSelection();
    marked.removeAllRanges();
    marked.addRange(range);
    copy.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C";
  });

  select();
  choose(0);
})();
