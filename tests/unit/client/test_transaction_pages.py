"""The reader of transaction pages: whatever a node answers, each version is found once or missing once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.fakes import URL, FakeNode, answer, ledger, refused, user_transaction
from toolkit.client._node import Node
from toolkit.client._reads import PAGE, pages_of, read_transactions

GAS = 9
OTHER = 77


def transaction(version, gas=GAS):
    return user_transaction(version, type="user_transaction", gas=gas)


def read(route, pages):
    """Return what is found and missing, and the requests, as (start, limit)."""
    fake = FakeNode({"GET /transactions": route})
    answers = list(read_transactions(Node(URL, transport=fake), pages))
    found = [(version, one) for one_answer in answers for version, one in one_answer.found]
    missing = [one for one_answer in answers for one in one_answer.missing]
    assert sum(one_answer.ended for one_answer in answers) == len(pages)
    return found, missing, [(int(query["start"]), int(query["limit"])) for query, _ in fake.sent("GET /transactions")]


def limited(size):
    def page(query, _):
        start, limit = int(query["start"]), min(size, int(query["limit"]))
        return answer([transaction(version) for version in range(start, start + limit)])

    return page


@pytest.mark.parametrize("size", [1, 7, 25, 99, 100, 1_000])
def test_a_page_limit_of_any_size_loses_nothing(size):
    """A node gives as many at once as it likes: every version is found, in the fewest requests."""
    found, missing, asked = read(limited(size), [range(100, 200), range(200, 250)])
    assert sorted(version for version, _ in found) == list(range(100, 250))
    assert all(one.version == version for version, one in found)
    assert missing == []
    assert len(asked) == -(-100 // min(size, 100)) + -(-50 // min(size, 50))


def test_a_gap_is_asked_for_once_more():
    """Versions left out of one answer are in the next: nothing is missing."""
    seen = []

    def once_holed(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        seen.append(start)
        holes = {3, 4, 9} if len(seen) == 1 else set()
        return answer([transaction(version) for version in range(start, start + limit) if version not in holes])

    found, missing, asked = read(once_holed, [range(20)])
    assert sorted(version for version, _ in found) == list(range(20))
    assert missing == []
    assert asked == [(0, 20), (3, 7)]


def test_a_gap_that_stays_is_missing_exactly():
    """As ranges of neighbours, with what is wrong; the versions around them are found."""

    def holed(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        return answer([transaction(version) for version in range(start, start + limit) if version not in {3, 4, 9}])

    found, missing, _ = read(holed, [range(20)])
    assert [(one.first, one.last) for one in missing] == [(3, 4), (9, 9)]
    assert [str(one.error).rpartition(" omits ")[2] for one in missing] == ["versions 3 to 4", "version 9"]
    assert sorted(version for version, _ in found) == [version for version in range(20) if version not in {3, 4, 9}]


def test_order_doubles_and_strangers_do_not_matter():
    """Transactions out of order, twice, and of versions that were not asked for: each wanted one is found once."""

    def mixed(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        versions = [*reversed(range(start, start + limit)), start, start + limit, start + 5_000, max(0, start - 1)]
        return answer([transaction(version) for version in versions])

    found, missing, _ = read(mixed, [range(100, 140), [150, 155]])
    assert sorted(version for version, _ in found) == [*range(100, 140), 150, 155]
    assert missing == []


def test_a_version_with_two_contents_is_missing():
    """Neither is taken: nothing says which one is right."""

    def torn(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        right = [transaction(version) for version in range(start, start + limit)]
        return answer(right + ([transaction(12, gas=OTHER)] if start <= 12 < start + limit else []))

    found, missing, _ = read(torn, [range(10, 15)])
    assert sorted(version for version, _ in found) == [10, 11, 13, 14]
    assert [(one.first, one.last) for one in missing] == [(12, 12)]
    assert "twice, with different contents" in str(missing[0].error)


@pytest.mark.parametrize("empty", [[], [transaction(7)]])
def test_an_answer_without_progress_ends_after_one_more_request(empty):
    """Nothing, or only what was not asked for: one more try, then the versions are missing."""
    found, missing, asked = read(answer(empty), [range(100, 200)])
    assert (found, [(one.first, one.last) for one in missing]) == ([], [(100, 199)])
    assert asked == [(100, 100)] * 2


def test_a_malformed_transaction_is_missing_alone():
    """One without a hash, one whose version is not a number: the others of the page are found."""

    def malformed(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        page = [transaction(version) for version in range(start, start + limit)]
        for one in page:
            if one["version"] == "12":
                del one["hash"]
            if one["version"] == "14":
                one["version"] = "-1"
        return answer(page)

    found, missing, _ = read(malformed, [range(10, 20)])
    assert sorted(version for version, _ in found) == [10, 11, 13, *range(15, 20)]
    assert [(one.first, one.last) for one in missing] == [(12, 12), (14, 14)]


def test_a_refused_request_is_missing_as_a_whole_and_not_repeated():
    """The node said no; other pages are read."""

    def page(query, _):
        return refused(400, "invalid_input", "no") if query["start"] == "100" else limited(100)(query, None)

    found, missing, asked = read(page, [range(100), range(100, 200)])
    assert (len(found), [(one.first, one.last) for one in missing]) == (100, [(100, 199)])
    assert len(asked) == 2


def test_a_backend_that_lags_is_asked_once_more():
    """Its head is below what was asked for, and another backend answers the next request."""
    lagging = refused(400, "invalid_input", "start is higher than the current ledger version", head=ledger(50))
    seen = []

    def page(query, body):
        seen.append(query)
        return lagging if len(seen) == 1 else limited(100)(query, body)

    assert read(page, [range(100, 200)])[1] == []
    assert read(lagging, [range(100, 200)])[2] == [(100, 100)] * 2


def test_versions_above_the_oldest_are_read_though_the_page_begins_below():
    """The pruned ones are missing, exactly; the rest of the page is found."""

    def pruned(query, body):
        if int(query["start"]) < 130:
            return refused(410, "version_pruned", "gone", head=ledger(oldest=130))
        return limited(100)(query, body)

    found, missing, _ = read(pruned, [[100, 129, 130, 190]])
    assert [version for version, _ in found] == [130, 190]
    assert [(one.first, one.last) for one in missing] == [(100, 129)]


def test_pages_span_a_hundred_versions():
    """Sparse versions share a page as far as one reaches."""
    assert pages_of([5, 40, 104, 105, 900]) == [[5, 40, 104], [105], [900]]


@given(
    st.lists(st.integers(0, 160), unique=True, max_size=60).map(sorted),
    st.lists(
        st.lists(st.tuples(st.integers(0, 200), st.sampled_from([GAS, GAS, GAS, OTHER])), max_size=30), max_size=8
    ),
    st.integers(1, 60),
)
def test_whatever_a_node_answers_each_version_is_found_once_or_missing_once(wanted, answers, size):
    """Any pages, then the node comes to its senses or not: no version is lost, doubled or another one's."""
    given_out = iter(answers)

    def page(query, body):
        some = next(given_out, None)
        return limited(size)(query, body) if some is None else answer([transaction(*one) for one in some])

    found, missing, asked = read(page, pages_of(wanted))
    missed = [version for one in missing for version in wanted if one.first <= version <= one.last]
    assert sorted([version for version, _ in found] + missed) == wanted
    assert all(one.version == version for version, one in found)
    assert all(limit <= PAGE for _, limit in asked)
    assert len(asked) <= 3 * len(wanted)
