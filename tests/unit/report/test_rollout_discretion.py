"""Secrets that other people's programs would tell."""

from __future__ import annotations

from tidegate.model.change import MASK
from tidegate.model.event import Event, Told
from tidegate.model.moment import Ms
from tidegate.report.rollout.discretion import Discretion
from tidegate.testing.builders import a_plan, an_object


def test_what_a_plan_puts_into_secrets_is_hidden() -> None:
    secret = an_object("v1 Secret", "db", stringData={"password": "hunter2-and-more"})
    discretion = Discretion.of(a_plan(secret))

    assert discretion.hide("login with hunter2-and-more failed") == f"login with {MASK} failed"


def test_what_stands_encoded_in_git_is_hidden_both_ways() -> None:
    secret = an_object("v1 Secret", "db", data={"password": "aHVudGVyMi1hbmQtbW9yZQ=="})
    discretion = Discretion.of(a_plan(secret))

    assert discretion.hide("hunter2-and-more") == MASK
    assert discretion.hide("aHVudGVyMi1hbmQtbW9yZQ==") == MASK


def test_each_line_of_a_key_is_hidden() -> None:
    secret = an_object("v1 Secret", "key", stringData={"tls.key": "BEGIN KEY\nqwertyuiop\nEND KEY"})
    discretion = Discretion.of(a_plan(secret))

    assert discretion.hide("read qwertyuiop") == f"read {MASK}"


def test_a_value_that_is_the_beginning_of_another_leaves_nothing_of_it() -> None:
    discretion = Discretion(["secret", "secret-and-more"])

    assert discretion.hide("it is secret-and-more") == f"it is {MASK}"


def test_what_objects_are_called_is_shown_though_it_holds_the_name_of_a_user() -> None:
    secret = an_object("v1 Secret", "db", stringData={"user": "authentik"})
    job, web = (an_object("v1 ConfigMap", one) for one in ("authentik-migrate", "authentik"))
    discretion = Discretion.of(a_plan(secret, job, web))

    told = discretion.hide("default/authentik, default/authentik-migrate-x4k2p: not authentik")
    assert told == f"default/authentik, default/authentik-migrate-x4k2p: not {MASK}"


def test_short_values_do_not_hide_words() -> None:
    discretion = Discretion(["true", "a"])

    assert discretion.hide("a true story") == "a true story"


def test_an_event_is_told_without_secrets() -> None:
    event = Event(Ms(0), Told.STEP_FAILED, "one", sentence="bad password hunter2-and-more")

    hidden = Discretion(["hunter2-and-more"]).hide_in(event)

    assert hidden.sentence == f"bad password {MASK}"
    assert (hidden.at, hidden.told, hidden.step) == (event.at, event.told, event.step)
