"""Secrets in messages of other programs are masked."""

from __future__ import annotations

from tests.support.builders import make_object, make_plan_from
from tidegate.model.plans.change import MASK
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import Ms


def test_values_of_secrets_of_a_plan_are_hidden() -> None:
    secret = make_object("v1 Secret", "db", stringData={"password": "hunter2-and-more"})
    discretion = Redactor.from_plan(make_plan_from(secret))

    assert discretion.redact("login with hunter2-and-more failed") == f"login with {MASK} failed"


def test_encoded_values_are_hidden_encoded_and_decoded() -> None:
    secret = make_object("v1 Secret", "db", data={"password": "aHVudGVyMi1hbmQtbW9yZQ=="})
    discretion = Redactor.from_plan(make_plan_from(secret))

    assert discretion.redact("hunter2-and-more") == MASK
    assert discretion.redact("aHVudGVyMi1hbmQtbW9yZQ==") == MASK


def test_each_line_of_a_key_is_hidden() -> None:
    secret = make_object(
        "v1 Secret", "key", stringData={"tls.key": "BEGIN KEY\nqwertyuiop\nEND KEY"}
    )
    discretion = Redactor.from_plan(make_plan_from(secret))

    assert discretion.redact("read qwertyuiop") == f"read {MASK}"


def test_a_value_that_is_the_beginning_of_another_leaves_nothing_of_it() -> None:
    discretion = Redactor(["secret", "secret-and-more"])

    assert discretion.redact("it is secret-and-more") == f"it is {MASK}"


def test_object_names_are_shown_even_if_they_contain_a_user_name() -> None:
    secret = make_object("v1 Secret", "db", stringData={"user": "authentik"})
    job, web = (make_object("v1 ConfigMap", name) for name in ("authentik-migrate", "authentik"))
    discretion = Redactor.from_plan(make_plan_from(secret, job, web))

    result = discretion.redact("default/authentik, default/authentik-migrate-x4k2p: not authentik")
    assert result == f"default/authentik, default/authentik-migrate-x4k2p: not {MASK}"


def test_short_values_do_not_hide_words() -> None:
    discretion = Redactor(["true", "a"])

    assert discretion.redact("a true story") == "a true story"


def test_an_event_is_printed_without_secrets() -> None:
    event = Event(Ms(0), EventType.STEP_FAILED, "one", message="bad password hunter2-and-more")

    hidden = Redactor(["hunter2-and-more"]).redact_event(event)

    assert hidden.message == f"bad password {MASK}"
    assert (hidden.at, hidden.type, hidden.step) == (event.at, event.type, event.step)
