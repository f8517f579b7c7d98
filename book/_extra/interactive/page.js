// The controls and pictures of the interactive page. All numbers come from rates.js.
"use strict";

(() => {
  const TOKENS = ["the", "a", "sun", "sea", "blue", "cat"];
  const PRESETS = {
    "a draft model that errs": [[30, 8, 20, 26, 10, 6], [48, 28, 6, 5, 9, 4]],
    "the draft is nearly right": [[50, 20, 12, 9, 6, 3], [46, 23, 13, 8, 7, 3]],
    "the draft is sure of the wrong token": [[10, 55, 15, 10, 6, 4], [80, 5, 5, 4, 3, 3]],
    "both are flat": [[20, 18, 17, 16, 15, 14], [14, 15, 16, 17, 18, 20]],
  };
  const SCHEMES = {
    with_replacement: "independent draws",
    without_replacement: "without replacement (one after the other)",
    distinct: "independent, given that all differ",
    greedy: "greedy: the top n − 1 and one drawn",
    spechub: "SpecHub's pairs (n = 2)",
    deterministic: "the top n, no randomness",
  };
  const VERIFIERS = {
    optimal: "optimal",
    rrs: "RRS",
    rrs_without: "RRS without replacement",
    kseq: "K-SEQ",
    greedy: "greedy",
    spechub: "SpecHub",
    deterministic: "zero and renormalise",
    token_matching: "token matching",
  };
  const root = document.getElementById("mdsd-page");

  function make(tag, attributes, ...children) {
    const svg = ["svg", "rect", "line", "path", "circle", "text", "title"].includes(tag) && attributes.svg !== false;
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (name !== "svg") node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function choice(id, label, options) {
    const entries = Object.entries(options).map(([value, text]) => make("option", { value }, text));
    return make("div", { class: "field" }, make("label", { for: id }, label), make("select", { id }, ...entries));
  }

  function slider(id, label, min, max, step, value) {
    const input = make("input", { id, type: "range", min, max, step, value });
    const shown = make("output", { for: id });
    return make("div", { class: "field" }, make("label", { for: id }, label, " ", shown), input);
  }

  const names = Object.fromEntries(Object.keys(PRESETS).map((name) => [name, name]));
  const weights = TOKENS.map((token, x) =>
    make("tr", {},
      make("th", { scope: "row" }, token),
      ...["p", "q"].map((side) =>
        make("td", {},
          make("input", { id: `${side}-${x}`, type: "range", min: 0, max: 100, step: 1,
            "aria-label": `weight of “${token}” in ${side}`, class: side }))),
    ));
  root.replaceChildren(
    make("form", { class: "controls" },
      choice("scheme", "How drafts are drawn", SCHEMES),
      slider("n", "Drafts n:", 1, 5, 1, 2),
      slider("temperature", "Temperature:", 0.1, 2, 0.05, 1),
      choice("preset", "Start from", names),
      make("table", { class: "weights" },
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "token"),
          make("th", { scope: "col" }, "target p"), make("th", { scope: "col" }, "draft q"))),
        make("tbody", {}, ...weights))),
    make("p", { id: "summary", role: "status", "aria-live": "polite" }),
    make("div", { id: "bars", class: "picture" }),
    make("div", { id: "curve", class: "picture" }),
    make("div", { id: "table" }),
  );
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  const get = (id) => document.getElementById(id);
  const digits = (value, count = 3) => value.toFixed(count).replace(/^-(0\.0*)$/, "$1");

  function load(preset) {
    ["p", "q"].forEach((side, row) => PRESETS[preset][row].forEach((value, x) => (get(`${side}-${x}`).value = value)));
  }

  /** The inputs as they stand, and whether they can be used. */
  function read() {
    const side = (name) => TOKENS.map((_, x) => Number(get(`${name}-${x}`).value));
    return { p: side("p"), q: side("q"), n: Number(get("n").value), scheme: get("scheme").value,
      temperature: Number(get("temperature").value) };
  }

  function frame(title, height) {
    return make("svg", { viewBox: `0 0 640 ${height}`, role: "img", "aria-label": title });
  }

  function drawBars(p, q, found) {
    const shown = found.fixed.concat(found.order);
    const top = Math.max(...p, ...q);
    const inside = new Set(found.subset);
    const picture = frame("Bars of p and q for every token, in the order of p/q; the deciding set is shaded.", 220);
    shown.forEach((x, k) => {
      const left = 40 + k * 98;
      if (inside.has(x)) picture.append(make("rect", { class: "inside", x: left - 8, y: 8, width: 98, height: 204 }));
      [["p", p[x]], ["q", q[x]]].forEach(([side, value], j) => {
        const height = (140 * value) / top;
        picture.append(
          make("rect", { class: side, x: left + 2 + j * 40, y: 168 - height, width: 36, height }),
          make("text", { x: left + 20 + j * 40, y: 162 - height, "text-anchor": "middle", class: "small" }, digits(value, 2)));
      });
      const label = found.fixed.includes(x) ? `${TOKENS[x]} (always)` : TOKENS[x];
      picture.append(make("text", { x: left + 40, y: 190, "text-anchor": "middle" }, label));
    });
    get("bars").replaceChildren(
      make("p", { class: "legend" }, make("span", { class: "key p" }), "target p ", make("span", { class: "key q" }),
        "draft q ", make("span", { class: "key inside" }), "the deciding set H; tokens from left to right by p/q"),
      picture);
  }

  function drawCurve(found) {
    const picture = frame(`The curve D over the prefixes; its largest value is ${digits(Math.max(0, ...found.curve))}.`, 230);
    const high = Math.max(0.05, ...found.curve);
    const low = Math.min(-0.05, ...found.curve);
    const first = found.fixed.length;
    const X = (k) => 60 + (540 * k) / Math.max(1, found.curve.length - 1);
    const Y = (value) => 20 + (160 * (high - value)) / (high - low);
    picture.append(make("line", { class: "axis", x1: 50, x2: 620, y1: Y(0), y2: Y(0) }));
    for (const value of [high, 0, low]) {
      picture.append(make("text", { x: 44, y: Y(value) + 5, "text-anchor": "end", class: "small" }, digits(value, 2)));
    }
    picture.append(make("path", { class: "curve", d: found.curve.map((D, k) => `${k ? "L" : "M"}${X(k)} ${Y(D)}`).join("") }));
    found.curve.forEach((D, k) => {
      const best = k === found.best && found.subset.length > 0;
      picture.append(
        make("circle", { cx: X(k), cy: Y(D), r: best ? 8 : 4, class: best ? "best" : "point" }, make("title", {}, digits(D, 6))),
        make("text", { x: X(k), y: 222, "text-anchor": "middle", class: "small" }, k ? `+ ${TOKENS[found.order[k - 1]]}` : first ? "always" : "∅"));
    });
    get("curve").replaceChildren(
      make("p", { class: "legend" }, "D = P(all drafts in H) − p(H), for H growing token by token; its top is 1 − α*"), picture);
  }

  function drawTable(found) {
    const rows = Object.entries(VERIFIERS).filter(([rule]) => rule in found.verifiers).map(([rule, name]) => {
      const value = found.verifiers[rule];
      const bar = make("span", { class: "bar", style: `width: ${100 * value}%` });
      return make("tr", { "data-rule": rule }, make("th", { scope: "row" }, name), make("td", {}, digits(value, 4)),
        make("td", {}, digits(found.rate - value, 4)), make("td", { class: "track", "aria-hidden": "true" }, bar));
    });
    const head = ["verifier", "acceptance", "below the optimum", ""].map((text) => make("th", { scope: "col" }, text));
    get("table").replaceChildren(
      make("table", { class: "verifiers" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
  }

  function update() {
    const state = read();
    if (state.scheme === "spechub" && state.n !== 2) get("n").value = state.n = 2;
    get("n").disabled = state.scheme === "spechub";
    for (const id of ["n", "temperature"]) document.querySelector(`output[for=${id}]`).textContent = get(id).value;
    const empty = ["p", "q"].find((side) => state[side].every((weight) => weight === 0));
    if (empty) {
      get("summary").textContent = `Give at least one token of ${empty} a weight.`;
      return;
    }
    const p = mdsdRates.atTemperature(state.p, state.temperature);
    const q = mdsdRates.atTemperature(state.q, state.temperature);
    const found = mdsdRates.answer(p, q, state.scheme, state.n);
    const members = found.subset.map((x) => `“${TOKENS[x]}”`).join(", ");
    get("summary").textContent = `Optimal acceptance rate α* = ${digits(found.rate, 4)}. ` +
      (members ? `It is decided by H = {${members}}.` : "No set is drafted more often than the target asks for it.");
    drawBars(p, q, found);
    drawCurve(found);
    drawTable(found);
    root.dataset.rate = found.rate;
  }

  get("preset").addEventListener("input", () => { load(get("preset").value); update(); });
  root.addEventListener("input", (event) => { if (event.target.id !== "preset") update(); });
  load(Object.keys(PRESETS)[0]);
  update();
})();
