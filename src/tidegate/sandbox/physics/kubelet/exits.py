"""When and how a container ends by itself: its work is done, it is said to fail, nobody answers."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.moment import SECOND, Ms
from tidegate.sandbox.physics.kubelet import awaiting, dialling, states
from tidegate.sandbox.physics.kubelet.scene import Scene

PATIENCE = 20
"""The pause of what waits is at most this part of its wait."""
SOON = Ms(10 * SECOND)
"""A container that runs for good calls its Services when it begins, and not later."""


class Exit(NamedTuple):
    """An end that will come, or has."""

    moment: Ms
    code: int
    message: str = ""
    lines: tuple[str, ...] = ()
    killing: str = ""
    assumes: tuple[str, ...] = ()


class Leaving(NamedTuple):
    """What is known of a container's end: the end, or when more will be known.

    `assumed` says in words what `assumes` names.
    """

    exit: Exit | None
    alarm: Ms | None = None
    assumed: str = ""
    assumes: tuple[str, ...] = ()


def foresee_exit(scene: Scene, box: states.Box, began: Ms, now: Ms) -> Leaving:
    """The end of a container that began then, as far as it can be told now."""
    failing = _failure(scene, box, began)
    if scene.is_endless and not scene.course.dials:
        return _serve(scene, failing, began, now)
    waited = began if scene.is_endless else awaiting.follow_waits(scene, began, now)
    if isinstance(waited, awaiting.Awaited):
        return _await(scene, waited, began, now)._replace(exit=failing)
    if isinstance(waited, awaiting.GivenUp):
        message = f"{waited.missing}, and `kubectl` gives up {states.in_words(states.KUBECTL)}"
        given_up = Exit(waited.moment, 1, message, (waited.line,), assumes=(states.KUBECTL,))
        return Leaving(_earlier(failing, given_up))
    began = waited
    dialled = _dialled(scene)
    if not dialled:
        return Leaving(_earlier(failing, _done(scene, began)))
    if dialling.does_poll(scene.view, scene.pod, scene.container, scene.profile):
        leaving = _poll(scene, dialled, began, now)
    else:
        leaving = _dial(scene, dialled, began, now)
    return leaving._replace(exit=_earlier(failing, leaving.exit))


def _work(scene: Scene) -> Ms:
    course = scene.course
    return Ms(
        (course.init if scene.role is states.ContainerRole.INIT else course.run) + course.slow
    )


def _done(scene: Scene, began: Ms) -> Exit | None:
    return None if scene.is_endless else Exit(Ms(began + _work(scene)), 0)


def _earlier(one: Exit | None, other: Exit | None) -> Exit | None:
    """The first of two ends; at the same moment, the failure."""
    if one is None or other is None:
        return one or other
    return one if one.moment <= other.moment else other


def _failure(scene: Scene, box: states.Box, began: Ms) -> Exit | None:
    failure = scene.course.failure
    if failure is None:
        return None
    if failure.times is not None and box.restarts + scene.earlier >= failure.times:
        return None
    lasted = failure.after
    if lasted is None:
        lasted = Ms(SECOND) if scene.is_endless else _work(scene)
    return Exit(Ms(began + lasted), failure.code, "said by the scenario")


def _serve(scene: Scene, failing: Exit | None, began: Ms, now: Ms) -> Leaving:
    """A server goes on whoever answers. That somebody does not is told when it begins."""
    silent = _silent(scene, _dialled(scene)) if states.whole_second(now) == began else None
    if silent is None:
        return Leaving(failing)
    said = _said(silent, "and it goes on without", states.SERVERS_WAIT)
    return Leaving(failing, assumed=said, assumes=(states.HOSTS, states.SERVERS_WAIT))


def _dialled(scene: Scene) -> tuple[dialling.Dialled, ...]:
    return dialling.dialled_services(scene.view, scene.pod, scene.container, scene.profile)


def _silent(scene: Scene, dialled: tuple[dialling.Dialled, ...]) -> dialling.Dialled | None:
    """The first of these Services that nobody answers for."""
    return next(
        (one for one in dialled if dialling.answering_since(scene.view, one.service) is None), None
    )


def _dial(scene: Scene, dialled: tuple[dialling.Dialled, ...], began: Ms, now: Ms) -> Leaving:
    due = Ms(began + scene.course.dial)
    if now < due:
        return Leaving(None, due)
    if scene.is_endless and now > due + SOON:
        return Leaving(None)
    silent = _silent(scene, dialled)
    if silent is None:
        return Leaving(_done(scene, began))
    message = _said(silent, "and its call fails", states.DIAL_FAILS)
    line = f"dial tcp: lookup {silent.host}: no endpoints"
    return Leaving(Exit(now, 1, message, (line,), assumes=(states.HOSTS, states.DIAL_FAILS)))


def _poll(scene: Scene, dialled: tuple[dialling.Dialled, ...], began: Ms, now: Ms) -> Leaving:
    silent = _silent(scene, dialled)
    if silent is not None:
        waited = now - began
        is_first = scene.course.poll <= waited < 2 * scene.course.poll
        assumed = _said(silent, "and it waits", states.DIAL_POLLS) if is_first else ""
        assumes = (states.HOSTS, states.DIAL_POLLS)
        return Leaving(None, Ms(now + _pause(scene, Ms(waited))), assumed, assumes)
    since = max(dialling.answering_since(scene.view, one.service) or began for one in dialled)
    return Leaving(_done(scene, max(began, since)))


def _await(scene: Scene, wait: awaiting.Awaited, began: Ms, now: Ms) -> Leaving:
    """Look again before long, and when the wait is over."""
    waited = Ms(now - began)
    again = Ms(now + _pause(scene, waited))
    alarm = again if wait.until is None else min(again, wait.until)
    is_first = scene.course.poll <= waited < 2 * scene.course.poll
    words = f"{wait.missing}, and `kubectl` waits {states.in_words(states.KUBECTL)}"
    return Leaving(None, alarm, words if is_first else "", (states.KUBECTL,))


def _pause(scene: Scene, waited: Ms) -> Ms:
    """What has waited for long is looked at less often, so that waiting costs little."""
    return max(scene.course.poll, states.whole_second(Ms(waited // PATIENCE)))


def _said(silent: dialling.Dialled, consequence: str, assumption: str) -> str:
    service = f"{silent.service.namespace}/{silent.service.name}"
    what = f"Service {service} has no ready endpoints, {consequence}"
    return f"{what}; {silent.why} {states.in_words(assumption)}"
