"""Faults to put into the decoding loop; `tests/mutations.py` runs them."""

from tests.mutant import mutation

FAMILIES, FAULTS, GENERATE, LAW = (
    f"tests/decoding/test_{name}.py" for name in ("families", "faults", "generate", "losslessness")
)
LOGITS = f"{FAMILIES}::test_tree_logits_equal_path_logits[sdpa-llama]"
ALONE = f"{GENERATE}::test_a_ragged_batch_is_what_each_prompt_gets_alone[with_replacement-rrs-node-tree0]"
PERFECT = f"{FAULTS}::TestBlocksTreesAndBonus::test_a_perfect_draft_is_accepted_in_full_round_after_round"
ONCE = f"{GENERATE}::test_nothing_is_computed_twice"
PAIRS = f"{LAW}::test_an_end_of_sequence_token_ends_the_text_wherever_it_falls[2]"
CHAIN = f"{LAW}::test_an_end_of_sequence_token_ends_the_text_wherever_it_falls[1,1]"
BLOCK = f"{FAULTS}::TestBlocksTreesAndBonus::test_block_verification_of_a_chain"

DECODING = [
    mutation(
        "loop: equal siblings lose their multiplicity",
        "trees/drafted_tree.py",
        "        row = row[row != NO_DRAFT]\n",
        "        row = np.array(list(dict.fromkeys(row[row != NO_DRAFT].tolist())), dtype=np.int64)\n",
        tests=PAIRS,
    ),
    mutation(
        "loop: a node's position counts its elder cousins",
        "decoding/scoring.py",
        "torch.as_tensor(depths) + self._cache.lengths[row]",
        "torch.arange(len(depths)) + self._cache.lengths[row]",
        tests=LOGITS,
    ),
    mutation(
        "loop: a node sees the node before it",
        "decoding/scoring.py",
        "allowed[first + i] |= allowed[first + parent - before]",
        "allowed[first + i] |= allowed[first + i - 1]",
        tests=LOGITS,
    ),
    mutation(
        "loop: the mask forgets ancestors of earlier passes",
        "decoding/scoring.py",
        "                allowed[first + i, slots[parent]] = True\n",
        "                pass\n",
        tests=PERFECT,
    ),
    mutation(
        "cache: the values of an accepted branch stay where they were",
        "decoding/cache.py",
        "            layer.values[row, :, start : start + len(slots)] = layer.values[row].index_select(1, index)\n",
        "",
        tests=LOGITS,
    ),
    mutation(
        "cache: rejected drafts are not cut off",
        "decoding/cache.py",
        "        self.width = max(self.lengths, default=0)\n",
        "        self.width = max([*self.lengths, *(t[-1] + 1 for t in self.tails if t)], default=0)\n"
        "        self.lengths = [self.width for _ in self.lengths]\n",
        tests=LOGITS,
    ),
    mutation(
        "draft: its cache lacks the last draft after full acceptance",
        "decoding/drafters/base.py",
        "Block.chain(tokens[self.scorer.cached(row) :], scored=1)",
        "Block.chain(tokens[max(self.scorer.cached(row), len(tokens) - 1) :], scored=1)",
        tests=PERFECT,
    ),
    mutation(
        "draft: accepted drafts are thrown away and read again",
        "decoding/drafters/base.py",
        "*(places[n] for n in path if n in places)]",
        "]",
        tests=ONCE,
    ),
    mutation(
        "draft: its rows stay when a request is finished",
        "decoding/loop.py",
        "                self.drafter.select_rows(rows)\n",
        "",
        tests=f"{GENERATE}::test_texts_of_different_length_leave_the_batch_one_by_one",
    ),
    mutation(
        "loop: a node is judged by the draft distribution of its parent",
        "trees/rules.py",
        "self.verifier.prepare(p[node], q[node], scheme)",
        "self.verifier.prepare(p[node], q[max(tree.parents[node], 0)], scheme)",
        tests=CHAIN,
    ),
    mutation(
        "loop: a node is judged by the target distribution of its parent",
        "trees/rules.py",
        "self.verifier.prepare(p[node], q[node], scheme)",
        "self.verifier.prepare(p[max(tree.parents[node], 0)], q[node], scheme)",
        tests=CHAIN,
    ),
    mutation(
        "path: what a rejection below leaves over is forgotten",
        "trees/rules.py",
        "scale = min(1.0, wanted[y] / r[y])",
        "scale = min(1.0, p[node][y] / r[y])",
        tests=BLOCK,
    ),
    mutation(
        "path: a node is given up with the chance of its child",
        "trees/rules.py",
        "choices.accept(left / (1.0 - w + left))",
        "choices.accept(left)",
        tests=BLOCK,
    ),
    mutation(
        "loop: only the last token of a block may end the text",
        "decoding/request.py",
        "            if token in eos:\n",
        "            if token in eos and count == len(tokens):\n",
        tests=f"{FAULTS}::TestEndsAndCounts",
    ),
    mutation(
        "loop: tokens are counted before the cut",
        "decoding/loop.py",
        "len(walk.path), count))",
        "len(walk.path), len(tokens)))",
        tests=f"{FAULTS}::TestEndsAndCounts",
    ),
    mutation(
        "loop: processors see the committed text alone",
        "decoding/loop.py",
        "torch.tensor([[*request.tokens, *tree.path_tokens(node)]])",
        "torch.tensor([[*request.tokens]])",
        tests=f"{FAULTS}::TestVocabularyAndProcessors",
    ),
    mutation(
        "settings: a rule that is not lossless is taken",
        "decoding/settings.py",
        "            self.rule.check(scheme)\n",
        "            pass\n",
        tests=f"{GENERATE}::test_a_rule_that_is_not_lossless_is_refused_before_any_pass",
    ),
    mutation(
        "loop: drafts go beyond the context",
        "decoding/loop.py",
        "depth = min(depth, limit - len(request.tokens))",
        "depth = min(depth, limit + 1 - len(request.tokens))",
        tests=f"{FAULTS}::TestCacheAndPositions",
    ),
    mutation(
        "loop: the attention window is not looked at",
        "decoding/generate.py",
        "if window is not None and need > window:",
        "if window is not None and need > window + 1:",
        tests=f"{FAMILIES}::test_windows_are_served_inside_and_refused_beyond",
    ),
    mutation(
        "seeds: all requests draw from one stream",
        "decoding/generate.py",
        "spawn_key=(i,)",
        "spawn_key=(0,)",
        tests=f"{GENERATE}::test_seeds",
    ),
    mutation(
        "seeds: draws of a round that failed are lost",
        "randomness.py",
        "            self._rng.bit_generator.state = state\n",
        "            pass\n",
        tests=f"{FAULTS}::TestRandomStreams",
    ),
    mutation(
        "cache: a round that failed leaves its drafts in the target's cache",
        "decoding/loop.py",
        "                self.target.forget()\n",
        "",
        tests=f"{FAULTS}::TestRandomStreams",
    ),
    mutation(
        "loop: the draft is not given the target's temperature",
        "decoding/generate.py",
        'if draft_sampling is None and drafter.proposal == "deterministic":',
        "if draft_sampling is None:",
        tests=f"{GENERATE}::test_at_temperature_0_drafts_may_be_the_top_of_an_unwarped_draft",
    ),
    mutation(
        "batch: padding is not left out of the mask",
        "decoding/scoring.py",
        "allowed[first:, : self._cache.lengths[row]] = True",
        "allowed[first:, :width] = True",
        tests=ALONE,
    ),
]
