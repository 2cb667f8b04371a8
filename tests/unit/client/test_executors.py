"""`results`: calls on an executor, as they end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from toolkit.client._executors import results


def test_results_that_wait_for_a_slow_task_are_bounded():
    """Tasks that end early wait for the first one; of those only `ahead` are begun."""
    gate, begun = threading.Event(), []

    def call(place):
        begun.append(place)
        return place if place or gate.wait(60) else None

    with ThreadPoolExecutor(2) as pool:
        found = results(pool, call, ((place,) for place in range(50)), 2, ahead=4)
        early = [next(found)[0] for _ in range(3)]
        assert sorted(early) == [1, 2, 3]
        threading.Timer(0.1, gate.set).start()
        assert next(found) == (0, 0)
        assert sorted(begun) == [0, 1, 2, 3]
        assert sorted([*early, 0, *(place for place, _ in found)]) == list(range(50))
