"""Simulated clusters: building them, and adding preinstalled objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidegate.clusters.connect import (
    Worker,
)
from tidegate.clusters.static_world import StaticWorld
from tidegate.files import read_user_file
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.operators.rows import Knowledge
from tidegate.model.simulation.commit import Commit
from tidegate.model.simulation.duration_estimate import DurationEstimate
from tidegate.model.simulation.preinstalled import GivenCluster
from tidegate.model.times import Ms
from tidegate.schema.custom_kinds import can_be_custom
from tidegate.world.protocol import World

if TYPE_CHECKING:
    from tidegate.knowledge.catalog import KindCatalog
    from tidegate.model.operators.rows import Operator
    from tidegate.sandbox.controllers.interface import Controller
    from tidegate.sandbox.node.profile import Profile
    from tidegate.sandbox.operators.preinstalled import InstalledOperator
    from tidegate.sandbox.scenario import Scenario
    from tidegate.sandbox.world import Sandbox


class SimulationConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of simulated clusters."""

    scenario: Path | None = None
    """Scenario file of the user."""
    profile: Path | None = None
    """Duration profile of the user."""
    operators: Path | None = None
    """File with the user's operator knowledge."""
    seed: int = 0
    """Wins over the seed of the scenario, unless it is 0."""
    start: Ms | None = None
    """Wins over the start time of the scenario."""
    assumed: Mapping[str, GivenCluster] = msgspec.field(default_factory=dict)
    """By cluster name, the dependencies that are assumed to exist."""
    duration_estimate: DurationEstimate = DurationEstimate.LIKELY
    """Which end of each duration range counts."""
    is_static: bool = False
    """Whether the clusters are only read, so that nothing needs to be simulated."""
    has_controllers: bool = True
    """Whether controllers run; a preview needs none."""

    @property
    def is_new(self) -> bool:
        """Whether the clusters have the objects of new clusters only."""
        return self.scenario is None and not self.assumed


def build_sandbox(
    simulation: SimulationConfig,
    workers: Mapping[str, Worker] | None = None,
    *,
    clusters: Iterable[str] = ("",),
) -> World:
    """Build simulated clusters with controllers, kubelet, operators and preinstalled objects."""
    if simulation.is_static and simulation.is_new:
        return StaticWorld(simulation.start)
    if simulation.is_new and not simulation.has_controllers:
        return _build_bare(simulation, workers, clusters)
    from tidegate.sandbox.world import START, Sandbox

    scenario = load_scenario(simulation)
    sandbox = Sandbox(
        (),
        seed=simulation.seed or scenario.seed,
        faults=(*scenario.faults, *scenario.edits),
        workers=workers,
        start=simulation.start or scenario.start or START,
    )
    add_sandbox_clusters(sandbox, simulation, clusters)
    return sandbox


def add_sandbox_clusters(
    world: World, simulation: SimulationConfig, clusters: Iterable[str]
) -> None:
    """Add simulated clusters to a simulated World."""
    if isinstance(world, StaticWorld):
        return  # all clusters are the same
    sandbox, knowledge, scenario = (
        _require_sandbox(world),
        load_knowledge(simulation),
        load_scenario(simulation),
    )
    controllers, names = _build_controllers(simulation, knowledge, scenario), tuple(clusters)
    for name in names:
        sandbox.add_cluster(name, controllers)
    for name in names:
        assumed = simulation.assumed.get(name, GivenCluster())
        _preinstall(sandbox, name, scenario.given.merged_with(assumed), knowledge, controllers)


def preinstall(
    world: World, simulation: SimulationConfig, more: Mapping[str, GivenCluster]
) -> None:
    """Add preinstalled objects to existing simulated clusters, by cluster name."""
    sandbox, knowledge, scenario = (
        _require_sandbox(world),
        load_knowledge(simulation),
        load_scenario(simulation),
    )
    controllers = _build_controllers(simulation, knowledge, scenario)
    for name, given in more.items():
        _preinstall(sandbox, name, given, knowledge, controllers)


def _require_sandbox(world: World) -> Sandbox:
    sandbox = as_sandbox(world)
    if sandbox is None:
        raise TypeError(world)
    return sandbox


def _build_controllers(
    simulation: SimulationConfig, knowledge: Knowledge, scenario: Scenario
) -> tuple[Controller, ...]:
    from tidegate.sandbox.controller_set import build_controllers
    from tidegate.sandbox.operators.preinstalled import instant_start_rules

    givens = [scenario.given, *simulation.assumed.values()]
    installed = [
        operator
        for given in givens
        for operator in _installed_operators(knowledge.operators, given)
    ]
    profile = _read_profile(simulation, knowledge).with_rules(
        (*instant_start_rules(installed), *scenario.behaviours)
    )
    factor = profile.spread.factor(simulation.duration_estimate)
    return build_controllers(profile, knowledge, factor=factor)


def _build_bare(
    simulation: SimulationConfig, workers: Mapping[str, Worker] | None, clusters: Iterable[str]
) -> World:
    """Build simulated clusters with an API server and base objects only."""
    from tidegate.sandbox.bootstrap import load_base_objects
    from tidegate.sandbox.world import START, Sandbox

    start = simulation.start or START
    bare = Sandbox(clusters, seed=simulation.seed, workers=workers, start=start)
    bare.preload(load_base_objects())
    return bare


def _preinstall(
    sandbox: Sandbox,
    name: str,
    given: GivenCluster,
    knowledge: Knowledge,
    controllers: tuple[Controller, ...],
) -> None:
    """Add base objects and preinstalled objects to a cluster, and let them become ready."""
    from tidegate.knowledge.catalog import KindCatalog
    from tidegate.sandbox.bootstrap import load_base_objects
    from tidegate.sandbox.operators.named_objects import named_refs, status_writes
    from tidegate.sandbox.operators.preinstalled import merge_objects, settle_preinstalled
    from tidegate.sandbox.server.store import ref_from_body

    cluster, rows, now = (
        sandbox.clusters[name],
        KindCatalog.from_rows(knowledge.rows),
        sandbox.now(),
    )
    desired = merge_objects(load_base_objects(), _preinstalled_objects(given, knowledge))
    sandbox.preload(
        [body for body in desired if cluster.reader.get(ref_from_body(body)) is None], (name,)
    )
    for write in status_writes(given, rows, cluster.reader, now):
        cluster.preload(write)
    namespaces = {
        operator.namespace for operator in _installed_operators(knowledge.operators, given)
    } | {*given.namespaces}
    namespaces |= {ref.namespace for ref in named_refs(given, rows) if ref.namespace}
    settle_preinstalled(
        cluster.reader, cluster.preload, controllers, namespaces=namespaces, now=now
    )


def preinstalled_objects(simulation: SimulationConfig) -> list[dict[str, Json]]:
    """Return the preinstalled objects of a simulated cluster, without its base objects."""
    return _preinstalled_objects(load_scenario(simulation).given, load_knowledge(simulation))


def _preinstalled_objects(given: GivenCluster, knowledge: Knowledge) -> list[dict[str, Json]]:
    from tidegate.knowledge.catalog import KindCatalog
    from tidegate.sandbox.operators.named_objects import named_bodies, namespace_body
    from tidegate.sandbox.operators.preinstalled import (
        crds_by_name,
        merge_objects,
        operator_objects,
    )

    rows = KindCatalog.from_rows(knowledge.rows)
    return merge_objects(
        operator_objects(_installed_operators(knowledge.operators, given), knowledge.rows),
        crds_by_name(given.kinds, rows),
        map(namespace_body, given.namespaces),
        named_bodies(given, rows),
        given.objects,
    )


def load_knowledge(simulation: SimulationConfig | None) -> Knowledge:
    """Return the operator knowledge: the built-in rows, and in a simulation those of the user.

    In a simulation, kinds that the scenario preinstalls count as served.
    """
    if simulation is None:
        from tidegate.knowledge.reader import load_builtin_knowledge

        return load_builtin_knowledge()
    knowledge = read_knowledge_files(simulation)
    if simulation.is_new:
        return knowledge
    from tidegate.knowledge.catalog import KindCatalog
    from tidegate.sandbox.operators.named_objects import externally_served_rows

    givens = (load_scenario(simulation).given, *simulation.assumed.values())
    kinds = [kind for given in givens for kind in given.kinds]
    if not kinds:
        return knowledge
    return knowledge.merged_with(
        Knowledge(rows=tuple(externally_served_rows(kinds, KindCatalog.from_rows(knowledge.rows))))
    )


def read_knowledge_files(simulation: SimulationConfig) -> Knowledge:
    """Return the operator knowledge from files, without preinstalled or assumed kinds."""
    from tidegate.knowledge.reader import load_builtin_knowledge, parse_knowledge

    path = simulation.operators
    if path is None:
        return load_builtin_knowledge()
    return load_builtin_knowledge().merged_with(parse_knowledge(read_user_file(path), str(path)))


def scenario_commits(simulation: SimulationConfig) -> tuple[Commit, ...]:
    """Return the commits that the scenario adds to the repository during the rollout."""
    return load_scenario(simulation).commits


def as_sandbox(world: World) -> Sandbox | None:
    """Return the World as a Sandbox, or None if its clusters are real."""
    from tidegate.sandbox.world import Sandbox

    return world if isinstance(world, Sandbox) else None


def explain_unserved(world: World | None, kind: Kind, catalogue: KindCatalog) -> str:
    """Explain why no operator serves a custom kind in a simulated cluster, with a fix.

    Empty if the kind is served. Empty for real clusters: their operators are not known.
    """
    from tidegate.sandbox.operators import availability
    from tidegate.sandbox.world import Sandbox

    row = availability.row_for(catalogue, kind)
    if not isinstance(world, Sandbox) or row is None or not can_be_custom(kind):
        return ""
    for cluster in world.clusters.values():
        if not availability.is_served(catalogue, cluster.reader, kind):
            why = availability.unserved_reason(catalogue, cluster.reader, kind)
            hint = f"; add it with `given: {{operators: [{row.operator}]}}` in a scenario"
            return why + (hint if row.operator else "")
    return ""


def load_scenario(simulation: SimulationConfig) -> Scenario:
    """Return the scenario of a simulation; an empty one without a file."""
    from tidegate.sandbox.scenario import Scenario, read_scenario

    if simulation.scenario is None:
        return Scenario()
    names = [operator.name for operator in read_knowledge_files(simulation).operators]
    text = read_user_file(simulation.scenario)
    return read_scenario(text, str(simulation.scenario), operators=names)


def _installed_operators(
    operators: Iterable[Operator], given: GivenCluster
) -> list[InstalledOperator]:
    """Return the preinstalled operators, each with its namespace."""
    from tidegate.sandbox.operators.preinstalled import InstalledOperator

    by_name = {operator.name: operator for operator in operators}
    return [
        InstalledOperator(
            by_name[given_operator.name],
            given_operator.namespace or by_name[given_operator.name].namespace,
            given_operator.definitions,
        )
        for given_operator in given.operators
    ]


def load_profile(simulation: SimulationConfig | None) -> Profile:
    """Return the duration profile, with the assumptions about programs."""
    config = simulation or SimulationConfig()
    return _read_profile(config, load_knowledge(config))


def _read_profile(simulation: SimulationConfig, knowledge: Knowledge) -> Profile:
    from tidegate.sandbox.node.profile_file import default_profile, read_profile

    estimate = simulation.duration_estimate
    shipped = default_profile(estimate)
    if simulation.profile is None:
        return shipped
    text, name = read_user_file(simulation.profile), str(simulation.profile)
    return read_profile(text, name, base=shipped, operators=knowledge.rows, estimate=estimate)


CONTEXT, KUBECONFIG = "tidegate-sandbox", "kubeconfig"


def sandbox_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of the running simulated cluster, in the user's state directory."""
    base = Path(environ.get("XDG_STATE_HOME", ""))
    user_directory = Path(environ.get("HOME") or Path.home())
    state = base if base.is_absolute() else user_directory / ".local" / "state"
    return state / "tidegate" / "sandbox"


def kubeconfig_hint(environ: Mapping[str, str]) -> str:
    """Return the hint that makes the context known to kubectl."""
    kubeconfig = sandbox_directory(environ) / KUBECONFIG
    if kubeconfig.exists():
        return f"run `export KUBECONFIG={kubeconfig}`, or use `--kubeconfig {kubeconfig}`"
    return "run `tidegate sandbox up`, which prints the path of its kubeconfig"
