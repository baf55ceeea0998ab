"""`tidegate units` against what a person found, `tidegate render --unit` against the controllers.

`python -m tests.conformance.oracles.units` asks the controllers again; that needs Go.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

import msgspec
import pytest

from tests.conformance.repositories.comparison import differences, is_test
from tests.support.expected_units import (
    RECORDED,
    REPOS,
    Expected,
    ExpectedFinding,
    expected,
    identity,
    shapes,
)
from tests.support.tidegate_command import Tidegate
from tests.support.unit_commands import (
    Checkout,
    Destination,
    ShownFinding,
    ShownUnit,
    is_at,
    locked,
)
from tidegate.documents import read_documents
from tidegate.model.k8s.objects import JsonObject

SHAPES = shapes()
UNITS = [(shape, unit) for shape in SHAPES for unit in expected(shape).units]
KNOWN = [(shape, unit) for shape, unit in UNITS if not unit.unknown]
UNKNOWN = [(shape, unit) for shape, unit in UNITS if unit.unknown]


def name_of(value: str | Expected) -> str:
    return value if isinstance(value, str) else value.record.removesuffix(".json")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all processes of a test run."""
    unit_resource = tmp_path_factory.getbasetemp()
    place = (
        unit_resource.parent if "PYTEST_XDIST_WORKER" in os.environ else unit_resource
    ) / "units"
    place.mkdir(exist_ok=True)
    return place


@pytest.fixture(scope="session")
def tidegate(shared: Path) -> Tidegate:
    """One user, so that what was rendered once is known."""
    return Tidegate(shared / "home")


@pytest.fixture(scope="session")
def checkouts(shared: Path) -> dict[str, Checkout]:
    with locked(shared / "lock"):
        return {shape: Checkout.for_shape(shape, shared) for shape in SHAPES}


def recorded(shape: str, unit: Expected) -> list[JsonObject]:
    content = (RECORDED / shape / unit.record).read_bytes()
    objects: list[JsonObject] = msgspec.json.decode(content)
    return objects


def without_objects(unit: ShownUnit) -> str:
    return repr(msgspec.structs.replace(unit, objects=None))


def kept(objects: list[JsonObject]) -> list[JsonObject]:
    return [item for item in objects if not is_test(item)]


@pytest.mark.parametrize(("shape", "unit"), UNITS, ids=name_of)
def test_expected_locations_exist_in_the_files(shape: str, unit: Expected) -> None:
    file, _, line = (unit.place or "").partition(":")
    if line:
        documents = read_documents((REPOS / shape / file).read_bytes(), file)

        result = {document.location.line: document.body for document in documents}[int(line)]

        if unit.set:
            assert identity(result) == unit.set
            return
        kind, _, name = identity(result).split("/")
        assert unit.id.split("/")[0] == kind
        assert unit.id.endswith(name)  # an overlay may put something before it


@pytest.mark.parametrize("shape", SHAPES)
def test_every_known_unit_is_recorded(shape: str) -> None:
    files = {path.name for path in (RECORDED / shape).iterdir()}

    assert files == {unit.record for unit in expected(shape).units if not unit.unknown}


@pytest.mark.parametrize("shape", SHAPES)
async def test_units_are_found(
    shape: str, tidegate: Tidegate, checkouts: dict[str, Checkout]
) -> None:
    target, checkout = expected(shape).units, checkouts[shape]

    _, answer = await checkout.units(tidegate, "--objects")

    shared = any(unit.together for unit in target)
    sets = ("ApplicationSet",)
    shown = [unit for unit in answer.units if (not shared or unit.kind) and unit.kind not in sets]
    doubtful = {unit.id for unit in target if unit.twice}
    ids = sorted(unit.id for unit in shown if unit.id not in doubtful)
    assert ids == sorted(unit.id for unit in target if unit.id not in doubtful)
    assert doubtful <= {unit.id for unit in shown}
    wrong = [text for unit in target for text in apart(shape, unit, shown, checkout)]
    assert "\n".join(wrong) == ""


@pytest.mark.parametrize("shape", SHAPES)
async def test_the_same_units_are_found_without_a_full_render(
    shape: str, tidegate: Tidegate, checkouts: dict[str, Checkout]
) -> None:
    (_, whole), (_, quick) = [
        await checkouts[shape].units(tidegate, *words) for words in (("--objects",), ())
    ]

    assert sorted(map(without_objects, quick.units)) == sorted(map(without_objects, whole.units))


@pytest.mark.parametrize("shape", SHAPES)
async def test_expected_findings_are_reported(
    shape: str, tidegate: Tidegate, checkouts: dict[str, Checkout]
) -> None:
    target, checkout = expected(shape).findings, checkouts[shape]

    _, answer = await checkout.units(tidegate, "--objects")

    unreported = [
        item for item in target if not any(reports(x, item, checkout) for x in answer.findings)
    ]
    assert "\n".join(map(str, unreported)) == ""
    if not target:
        assert [finding for finding in answer.findings if finding.severity == "error"] == []


@pytest.mark.parametrize(("shape", "unit"), KNOWN, ids=name_of)
async def test_a_unit_renders_as_its_controller_renders_it(
    shape: str, unit: Expected, tidegate: Tidegate, checkouts: dict[str, Checkout]
) -> None:
    made = await checkouts[shape].render(tidegate, unit)

    assert [error for item in made for error in item.errors] == []
    objects = [body for item in made for body in item.bodies]
    assert "\n".join(differences(recorded(shape, unit), objects, unit)) == ""


@pytest.mark.parametrize(("shape", "unit"), UNKNOWN, ids=name_of)
async def test_a_unit_that_cannot_be_rendered_has_an_error(
    shape: str, unit: Expected, tidegate: Tidegate, checkouts: dict[str, Checkout]
) -> None:
    made = await checkouts[shape].render(tidegate, unit)

    assert all(item.problems or item.notes for item in made)


def apart(shape: str, expected: Expected, shown: list[ShownUnit], checkout: Checkout) -> list[str]:
    """How a unit is not as expected, one sentence each."""
    same = [unit for unit in shown if unit.id == expected.id]
    if expected.of:
        places = [(unit, checkout.position(unit.location)) for unit in same]
        same = [unit for unit, position in places if is_at(position, expected.place or "")]
    if not same:
        return [f"{expected.id} is not at {expected.place}"]
    unit = same[0]
    goal = unit.destination or Destination()
    ordered = bool(expected.parent or expected.together)
    pairs: dict[str, tuple[object, object]] = {
        "namespace": (goal.namespace or "", expected.namespace),
        "cluster": (goal.cluster, expected.cluster),
        "wave": (unit.wave or 0, expected.wave if ordered else None),
        "dependsOn": (sorted(unit.dependsOn or []), sorted(expected.dependsOn)),
        "objects": (
            unit.objects,
            None if expected.unknown else len(kept(recorded(shape, expected))),
        ),
    }
    texts = [
        f"{expected.id}: {name} is {given!r}, not {right!r}"
        for name, (given, right) in pairs.items()
        if right is not None and given != right
    ]
    if expected.sources is not None and not lead_to(unit, expected.sources):
        texts.append(f"{expected.id}: sources are {unit.sources}, not {expected.sources}")
    if expected.place and not is_at(checkout.position(unit.location), expected.place):
        texts.append(f"{expected.id}: location is {unit.location}, not {expected.place}")
    return texts + parents(expected, unit)


def parents(expected: Expected, unit: ShownUnit) -> list[str]:
    """The parent. Units of one directory may have an implicit parent, which has no object."""
    if expected.circle or (expected.together and (unit.parent or "").count("/") < 2):
        return []
    text = []
    if unit.parent != expected.parent:
        text.append(f"{expected.id}: parent is {unit.parent}, not {expected.parent}")
    if unit.root is not None and unit.root is not (expected.parent is None):
        text.append(f"{expected.id}: root is {unit.root}")
    return text


def lead_to(unit: ShownUnit, expected: list[str]) -> bool:
    """Whether its sources are these; one that only lends files may be shown, or left out."""
    given = [posixpath.normpath(source.path or ".") for source in unit.sources]
    shown = [path or "." for path in expected]
    return given in (shown, [path for path in expected if path])


def reports(result: ShownFinding, expected: ExpectedFinding, checkout: Checkout) -> bool:
    says = [expected.says] if isinstance(expected.says, str) else expected.says
    places = [expected.place] if isinstance(expected.place, str) else expected.place
    text = f"{result.code} {result.message}".lower()
    position = checkout.position(result.location)
    return any(word.lower() in text for word in says) and any(
        is_at(position, place) for place in places
    )
