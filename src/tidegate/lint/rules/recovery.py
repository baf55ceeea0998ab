"""The first day and the worst one: keys that somebody brings, backups, and bands."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.rule import Mark, RuleRemark, Spotted, rule
from tidegate.lint.scene import LintScene
from tidegate.lint.words import name
from tidegate.model.bands import phase_in
from tidegate.model.finding import Severity
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text
from tidegate.model.unit import UnitId

CNPG = "postgresql.cnpg.io"


@rule(
    "ORD028",
    "A key has no source in the repository",
    Severity.NOTE,
    why="on an empty cluster nothing can be decrypted before somebody has brought it by hand",
    fix="write down where it is kept, and bring it before the first sync",
)
def key_by_hand(scene: LintScene) -> Iterator[RuleRemark]:
    if not scene.greenfield:
        return
    known = {(one.ref.namespace, one.ref.name) for one in scene.of_kind("", "Secret")}
    told: set[tuple[str, str]] = set()
    for unit, own in scene.unit_objects.items():
        secret = text(own.body, "spec", "decryption", "secretRef", "name")
        key = (unit.namespace, secret)
        if secret and key not in known | told:
            told.add(key)
            yield RuleRemark(
                sentence=f"somebody brings Secret `{unit.namespace}/{secret}` by hand: `{unit}`"
                " decrypts with it",
                at=Mark(own, ("spec", "decryption", "secretRef")),
            )


@rule(
    "ORD029",
    "A database begins empty where a backup is",
    Severity.NOTE,
    why="on the day of a disaster the repository makes a new, empty database, and the backup is"
    " not read",
    fix="keep a variant with `bootstrap.recovery` ready, and write down when it is used",
)
def empty_database(scene: LintScene) -> Iterator[RuleRemark]:
    if not scene.greenfield:
        return
    for actor in scene.of_kind(CNPG, "Cluster"):
        backs_up = mapping(actor.body, "spec", "backup") or mapping(actor.body, "spec", "plugins")
        if backs_up and not mapping(actor.body, "spec", "bootstrap", "recovery"):
            yield RuleRemark(
                sentence=f"{name(actor.ref)} is backed up, and begins empty on a new cluster",
                at=Mark(actor.document, ("spec", "bootstrap")),
            )


@rule(
    "ORD040",
    "A unit stands in a band that is not its own",
    Severity.WARNING,
    why="the phases of a rollout are parted into bands; what is in the wrong one comes too early or"
    " too late",
    fix="correct the label of the phase, or the bands in `lint.bands` of tidegate.yaml",
)
def wrong_band(scene: LintScene) -> Iterator[RuleRemark]:
    """Only where `tidegate.yaml` names the label that holds the phase."""
    bands = scene.bands
    if not bands.label:
        return
    for unit, told in scene.units.items():
        own = scene.unit_objects.get(unit)
        said: dict[str, Json] = {**dict(told.labels)}
        phase = phase_in(said, bands.label)
        at = Mark(own, ("metadata", "labels", bands.label)) if own else told.where
        if phase is None:
            continue
        if phase in bands.empty:
            yield RuleRemark(
                sentence=f"`{unit}` is in phase {phase:03}, which is kept empty", at=at
            )
        domain = text(said, bands.domain_label)
        own_phases = bands.domains.get(domain) or (0, 999)
        first, last = min(own_phases), max(own_phases)
        if not first <= phase <= last:
            yield RuleRemark(
                sentence=f"`{unit}` of `{domain}` is in phase {phase:03}, and its own are"
                f" {first:03} to {last:03}",
                at=at,
            )
        yield from _misfits(scene, unit, phase, at)


def _misfits(scene: LintScene, unit: UnitId, phase: int, at: Spotted) -> Iterator[RuleRemark]:
    """What a band takes in, where it says so; and definitions that stand in no band for them."""
    band = scene.bands.band_of(phase)
    actors = scene.by_unit.get(unit, [])
    if band is None:
        yield RuleRemark(sentence=f"`{unit}` is in phase {phase:03}, which is in no band", at=at)
        return
    strange = [one for one in actors if band.kinds and one.ref.kind.name not in band.kinds]
    if strange:
        yield RuleRemark(
            sentence=f"`{unit}` is in phase {phase:03} for {band.name}, and brings"
            f" {name(strange[0].ref)}",
            at=at,
            also=(Mark(strange[0].document),),
        )
