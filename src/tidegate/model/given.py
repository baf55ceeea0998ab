"""What is in a simulated cluster already: said by a scenario, or assumed.

Nouns that a scenario is read into and that can be printed as one.
"""

from __future__ import annotations

import msgspec

from tidegate.model.objects import Json, Kind


class GivenOperator(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """An operator that is in the cluster already; in its usual namespace if none is named.

    One without `definitions` brings no CRDs: they come from elsewhere.
    """

    name: str
    namespace: str = ""
    definitions: bool = True


class GivenKind(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A kind, as `group/version/Kind`, that is `defined` by a CRD which takes anything.

    One that is `served` needs no workload: somebody outside of the cluster makes its objects well.
    """

    name: str
    cluster_wide: bool = False
    defined: bool = True
    served: bool = True

    @property
    def kind(self) -> Kind:
        version, _, name = self.name.rpartition("/")
        return Kind.of(version, name)


class GivenCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the cluster already.

    `names`: objects that are there and well, whatever they hold, by `Kind` or `Kind.group`; each is
    a name, with its namespace before it if it has one.
    """

    operators: tuple[GivenOperator, ...] = ()
    kinds: tuple[GivenKind, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: dict[str, tuple[str, ...]] = {}
    objects: tuple[dict[str, Json], ...] = ()

    def and_more(self, other: GivenCluster) -> GivenCluster:
        """Both; what the other says of the same counts."""
        operators = {one.name: one for one in (*self.operators, *other.operators)}
        kinds = {one.name: one for one in (*self.kinds, *other.kinds)}
        names = {
            kind: tuple(dict.fromkeys((*self.names.get(kind, ()), *other.names.get(kind, ()))))
            for kind in (*self.names, *other.names)
        }
        return GivenCluster(
            operators=tuple(operators.values()),
            kinds=tuple(kinds.values()),
            namespaces=tuple(dict.fromkeys((*self.namespaces, *other.namespaces))),
            names=names,
            objects=(*self.objects, *other.objects),
        )


def title_of(group: str, name: str) -> str:
    """A kind without its version, as kubectl writes it: `ClusterIssuer.cert-manager.io`."""
    return f"{name}.{group}" if group else name


def parse_title(title: str) -> tuple[str, str]:
    """The group and the name of a kind that is written so."""
    name, _, group = title.partition(".")
    return group, name
