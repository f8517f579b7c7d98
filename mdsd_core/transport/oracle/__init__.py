"""The optimum by linear programming, by a flow and over all subsets, for small vocabularies."""
