// Optimal rates and exact acceptance for a handful of tokens, by enumeration. The checks of the book compare every number
// with the Python library. Token sets are bit masks; p and q are arrays that sum to 1.
"use strict";

const mdsdRates = (() => {
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const has = (mask, x) => (mask >> x) & 1;
  const mass = (weights, mask) => sum(weights.filter((_, x) => has(mask, x)));
  const size = (mask) => mask.toString(2).split("1").length - 1;
  const toMask = (tokens) => tokens.reduce((mask, x) => mask | (1 << x), 0);

  /** Weights to the power 1/temperature, normalised; a weight of 0 stays 0. */
  function atTemperature(weights, temperature) {
    const logs = weights.map(Math.log);
    const top = Math.max(...logs);
    if (top === -Infinity) throw new RangeError("at least one weight must be positive");
    const scaled = logs.map((log) => Math.exp((log - top) / temperature));
    const total = sum(scaled);
    return scaled.map((value) => value / total);
  }

  /** The m most probable tokens, lowest id first among equals, none of probability 0. */
  function topTokens(q, m) {
    const order = q.map((_, x) => x).filter((x) => q[x] > 0);
    order.sort((x, y) => q[y] - q[x] || x - y);
    return order.slice(0, m);
  }

  /** For every set A of n tokens: the probability that drawing n times without replacement by w gives A. */
  function sequentialSets(w, n) {
    const chance = new Float64Array(1 << w.length);
    chance[0] = 1;
    for (let A = 1; A < chance.length; A++) {
      if (size(A) > n) continue;
      for (let x = 0; x < w.length; x++) {
        const before = A & ~(1 << x);
        if (has(A, x) && w[x] > 0 && chance[before] > 0) {
          chance[A] += (chance[before] * w[x]) / mass(w, ~before);
        }
      }
    }
    return chance;
  }

  /** The same for n independent draws given that all are different. */
  function conditionedSets(w, n) {
    const chance = new Float64Array(1 << w.length);
    let total = 0;
    for (let A = 0; A < chance.length; A++) {
      if (size(A) !== n) continue;
      chance[A] = w.reduce((product, weight, x) => (has(A, x) ? product * weight : product), 1);
      total += chance[A];
    }
    return chance.map((value) => value / total);
  }

  /** A scheme: the fixed set T, the law off T (normalised), the number of drafts sampled there, and how. */
  function scheme(name, q, n) {
    const top = { greedy: n - 1, spechub: 1, deterministic: n }[name] || 0;
    if (name === "spechub" && n !== 2) throw new RangeError("SpecHub draws pairs: n must be 2");
    const fixed = topTokens(q, top);
    const off = q.map((value, x) => (fixed.includes(x) ? 0 : value));
    const total = sum(off);
    const law = off.map((value) => (total > 0 ? value / total : 0));
    const replacement = name === "with_replacement";
    const left = law.filter((value) => value > 0).length;
    const wanted = n - top;
    const sampled = replacement ? wanted : Math.min(wanted, left);
    const setsOf = name === "distinct" ? conditionedSets : sequentialSets;
    const sets = replacement ? null : setsOf(law, sampled);
    return { name, n, fixed, law, total, sampled, replacement, sets };
  }

  /** P(all sampled drafts lie in `mask`), whatever lies in T. */
  function within(drafts, mask) {
    if (drafts.sampled === 0) return 1;
    if (drafts.replacement) return mass(drafts.law, mask) ** drafts.sampled;
    let total = 0;
    for (let A = 0; A < drafts.sets.length; A++) {
      if ((A & ~mask) === 0 && size(A) === drafts.sampled) total += drafts.sets[A];
    }
    return total;
  }

  /** The prefix curve D_k = Q_k - p(H_k), the best prefix, and the optimal rate. */
  function optimum(p, drafts) {
    const order = drafts.law.map((_, x) => x).filter((x) => !drafts.fixed.includes(x));
    const ratio = (x) => (drafts.law[x] > 0 ? p[x] / drafts.law[x] : Infinity);
    order.sort((x, y) => (ratio(x) === ratio(y) ? x - y : ratio(x) - ratio(y)));
    let prefix = toMask(drafts.fixed);
    const points = [{ mask: prefix, tokens: drafts.fixed.slice() }];
    for (const x of order) {
      prefix |= 1 << x;
      points.push({ mask: prefix, tokens: points[points.length - 1].tokens.concat(x) });
    }
    for (const point of points) {
      point.Q = drafts.fixed.length === 0 && drafts.sampled > 0 && point.mask === 0 ? 0 : within(drafts, point.mask);
      point.D = point.Q - mass(p, point.mask);
    }
    const best = points.reduce((a, b) => (b.D > a.D ? b : a));
    const empty = best.D <= 0; // no set is drafted more often than the target asks for it
    return { order, points, best, subset: empty ? [] : best.tokens, rate: empty ? 1 : 1 - best.D };
  }

  const residual = (p, q, level) => p.map((value, x) => Math.max(0, value - level * q[x]));

  /** RRS: accepted drafts, with replacement in one dimension, without by going through the rejected tokens. */
  function rrs(p, drafts) {
    const q = drafts.law;
    if (drafts.replacement) {
      let level = 0;
      let left = 1;
      for (let j = 0; j < drafts.sampled; j++) {
        level += left;
        left = sum(residual(p, q, level));
      }
      return 1 - left;
    }
    // p is judged as a whole, T included: the chance that all sampled drafts are rejected
    const allRejected = (level, left, rejected, draws) => {
      if (draws === 0) return 1;
      const rest = mass(q, ~rejected);
      let chance = 0;
      for (let x = 0; x < q.length; x++) {
        if (has(rejected, x) || q[x] === 0) continue;
        const drawn = q[x] / rest;
        const kept = Math.max(0, p[x] - level * q[x]) / left;
        if (kept >= drawn) continue;
        const nextLevel = level + left / rest;
        const next = rejected | (1 << x);
        const nextLeft = sum(residual(p, q, nextLevel));
        if (nextLeft > 0) chance += (drawn - kept) * allRejected(nextLevel, nextLeft, next, draws - 1);
      }
      return chance;
    };
    return 1 - allRejected(0, 1, 0, drafts.sampled);
  }

  /** K-SEQ with the smallest factor rho that is lossless. */
  function kseq(p, drafts) {
    const k = drafts.sampled;
    const beta = (rho) => sum(p.map((value, x) => Math.min(drafts.law[x], value / rho)));
    const some = (rho) => 1 - (1 - Math.min(1, beta(rho))) ** k;
    let [low, high] = [1, Math.max(1, k)];
    for (let i = 0; i < 200 && high - low > 1e-15 * high; i++) {
      const middle = (low + high) / 2;
      if (some(middle) > middle * beta(middle)) low = middle;
      else high = middle;
    }
    return some(high);
  }

  function matching(p, drafts) {
    return sum(
      p.map((value, x) => {
        if (drafts.fixed.includes(x)) return value;
        const others = ((1 << p.length) - 1) & ~(1 << x);
        return value * (1 - within(drafts, others));
      }),
    );
  }

  /** Acceptance of every verifier that is lossless for these drafts. */
  function verifiers(p, drafts, rate) {
    const onFixed = sum(drafts.fixed.map((x) => p[x]));
    const found = { optimal: rate };
    if (drafts.name === "with_replacement") {
      found.rrs = rrs(p, drafts);
      found.kseq = kseq(p, drafts);
    }
    if (drafts.name === "without_replacement") found.rrs_without = rrs(p, drafts);
    if (drafts.name === "greedy" || drafts.name === "spechub") {
      const rule = drafts.name === "greedy" ? "greedy" : "spechub";
      found[rule] = onFixed + sum(p.map((value, x) => Math.min(value, drafts.law[x])));
    }
    if (drafts.name === "deterministic") found.deterministic = onFixed;
    found.token_matching = matching(p, drafts);
    return found;
  }

  /** All that the page shows, from distributions p and q. */
  function answer(p, q, name, n) {
    const drafts = scheme(name, q, n);
    const found = optimum(p, drafts);
    return {
      rate: found.rate,
      subset: found.subset,
      order: found.order,
      fixed: drafts.fixed,
      curve: found.points.map((point) => point.D),
      best: found.points.indexOf(found.best),
      verifiers: verifiers(p, drafts, found.rate),
    };
  }

  return { answer, atTemperature };
})();
