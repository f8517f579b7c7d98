"""Dinic's maximum flow for the bipartite networks of the oracle, on integers of any size."""

from collections import deque


def max_flow(supply: list[int], demand: list[int], members: list[list[int]]) -> int:
    """The largest flow source -> row (supply) -> its members (no limit) -> sink (demand).

    Parameters
    ----------
    supply, demand : list of int
        Capacities of the rows and of the columns, >= 0.
    members : list of list of int
        The columns that each row may send to.

    Returns
    -------
    int

    Examples
    --------
    >>> max_flow([2, 3], [1, 4], [[0], [0, 1]])
    4
    """
    rows, columns = len(supply), len(demand)
    source, sink = rows + columns, rows + columns + 1
    heads: list[int] = []  # edge e goes to heads[e]; e ^ 1 is its reverse
    room: list[int] = []
    edges: list[list[int]] = [[] for _ in range(rows + columns + 2)]

    def connect(a: int, b: int, capacity: int) -> None:
        edges[a].append(len(heads))
        edges[b].append(len(heads) + 1)
        heads.extend((b, a))
        room.extend((capacity, 0))

    for i, own in enumerate(members):
        connect(source, i, supply[i])
        for x in own:
            connect(i, rows + x, supply[i])
    for x in range(columns):
        connect(rows + x, sink, demand[x])

    total = 0
    while True:
        level = [-1] * len(edges)
        level[source] = 0
        queue = deque([source])
        while queue:
            a = queue.popleft()
            for e in edges[a]:
                if room[e] > 0 and level[heads[e]] < 0:
                    level[heads[e]] = level[a] + 1
                    queue.append(heads[e])
        if level[sink] < 0:
            return total
        untried = [0] * len(edges)
        while True:
            path: list[int] = []
            a = source
            while a != sink:  # depth first, stepping back from dead ends
                while untried[a] < len(edges[a]):
                    e = edges[a][untried[a]]
                    if room[e] > 0 and level[heads[e]] == level[a] + 1:
                        path.append(e)
                        a = heads[e]
                        break
                    untried[a] += 1
                else:
                    if not path:
                        break
                    a = heads[path.pop() ^ 1]
                    untried[a] += 1
            if a != sink:
                break
            pushed = min(room[e] for e in path)
            for e in path:
                room[e] -= pushed
                room[e ^ 1] += pushed
            total += pushed
