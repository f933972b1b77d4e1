"""Who may begin: counts are what is taken, whatever was taken and left before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from journeyman.app.runner import NOT_KNOWN, Places

PRINCIPALS = st.sampled_from(["ada", "bob", NOT_KNOWN, None])


@given(st.lists(st.tuples(st.sampled_from(["take", "leave"]), st.integers(0, 9), PRINCIPALS)))
def test_a_principal_has_its_share_and_no_more(steps: list[tuple[str, int, str | None]]) -> None:
    places, taken = Places(8), dict[str, str | None]()
    for step, number, principal in steps:
        run_id = f"run_{number}"
        if step == "take":
            places.take(run_id, principal)
            taken[run_id] = principal
        else:
            places.leave(run_id)
            taken.pop(run_id, None)
        for who in ("ada", "bob"):
            own = sum(other in (who, NOT_KNOWN) for other in taken.values())
            free = len(taken) < places.share or (len(taken) < places.count and own < places.share)
            assert places.free_for(who) is free
        assert places.free_for(None) is (len(taken) < places.count)


def test_who_waits_is_begun_in_order_as_far_as_shares_go() -> None:
    places = Places(4)
    for number in range(3):
        places.take(f"run_{number}", "ada")
    for number, who in enumerate(("ada", "ada", "bob", "bob")):
        places.wait(f"next_{number}", who)
    begun = []
    for run_id, principal in places.next():
        places.take(run_id, principal)
        begun.append(run_id)
    assert begun == ["next_2"]
    places.leave("run_0")
    assert [run_id for run_id, _ in places.next()][:1] == ["next_0"]
