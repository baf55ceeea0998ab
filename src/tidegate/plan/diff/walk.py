"""Walk along a wanted object, a live one and what we own of it, and note where they part.

Lists are walked as the server merges them: item by item where items have keys, value by value
where they are sets, else as one piece.

    wanted   containers: [{name: app, image: app:2}]
    live     containers: [{name: app, image: app:1, tty: true}, {name: proxy}]
    ours     containers: {name=app: {image, tty}}

    The list has keys, so `app` meets `app` and `proxy` is nobody's business here. `image` stands on
    both sides with other values: it is found as a change. `tty` is ours and not wanted any more:
    it is found as gone. Were it not ours, it would be left to whoever set it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.objects import Json
from tidegate.plan.diff.adoption import LAST_APPLIED
from tidegate.plan.diff.facts import (
    DROPPED,
    FREE_FORM,
    KEPT,
    is_default,
)
from tidegate.plan.diff.owned import (
    CONTAINERS,
    SELF,
    Body,
    Fields,
    Items,
    Key,
    Scalar,
    below,
    index_items,
    is_scalar,
    read_items,
)
from tidegate.plan.diff.places import (
    ROOT,
    Parting,
    Place,
    Step,
    Value,
    element_of,
    name_of,
    names_of,
)
from tidegate.plan.diff.values import is_equal, is_hollow, same_scalar, show_scalar
from tidegate.schema.builtin import merging_of

NO_ITEMS = read_items({})
PLAIN = frozenset([str, int, float, bool])


class Walk:
    """What is found on the way. `claims`: fields change hands though their values stay."""

    __slots__ = ("_is_builtin", "_is_definition", "_others", "claims", "found")

    def __init__(self, others: list[Fields], *, is_builtin: bool, is_definition: bool) -> None:
        self.found: list[Parting] = []
        self.claims = False
        self._others = others
        self._is_builtin = is_builtin
        # The schemas in a definition may use any name, so names say nothing there.
        self._is_definition = is_definition

    def fields(
        self, wanted: Body, live: Body, mine: Fields | None, place: Place = ROOT, parent: str = ""
    ) -> None:
        """Compare the fields of a mapping; `parent` is the name of the field it stands in."""
        owned = 0
        for name, value in wanted.items():
            own = mine.get("f:" + name) if mine else None
            there = live.get(name)
            if own is not None:
                owned += 1
            if type(value) in PLAIN and type(value) is type(there) and value == there:
                self.claims = self.claims or own is None
            elif own and isinstance(value, dict) and isinstance(there, dict):
                # Somebody owns what is inside, so it is no one piece.
                self.fields(value, there, own, (place, name), name)
            else:
                self._value(value, there, own, (place, name), parent)
        if mine and owned + (SELF in mine) < len(mine):
            self._gone_fields(wanted, live, mine, place)

    def _gone_fields(self, wanted: Body, live: Body, mine: Fields, place: Place) -> None:
        for element, own in mine.items():
            name = element[2:]
            if element != SELF and name not in wanted:
                self._gone(live.get(name), own, (place, name), live)

    def _value(
        self, wanted: Json, live: Json, own: Fields | None, place: Place, parent: str
    ) -> None:
        if wanted is None and parent in FREE_FORM and self._is_known(place):
            wanted = ""
        if live is None:
            self._new(wanted, own, place)
        elif wanted is None:
            self._null(live, own, place, parent)
        elif isinstance(wanted, dict) and isinstance(live, dict):
            self._mapping(wanted, live, own, place, parent)
        elif isinstance(wanted, list) and isinstance(live, list):
            self._list(wanted, live, own, place, parent)
        elif not self._same(wanted, live, place, parent):
            self.found.append(Parting(place, live, wanted))
        elif own is None:
            self.claims = True

    def _new(self, wanted: Json, own: Fields | None, place: Place) -> None:
        """Nothing lives there. What is empty and ours was left out by the server."""
        if wanted is None or (own is not None and is_hollow(wanted)):
            return
        is_known = self._is_known(place)
        if is_known and wanted == []:
            return
        if is_known and not wanted and name_of(place) in DROPPED:
            self.claims = True
        else:
            self.found.append(Parting(place, None, wanted))

    def _null(self, live: Json, own: Fields | None, place: Place, parent: str) -> None:
        """Null takes away a value that is one piece, and a default takes its place."""
        if isinstance(live, dict) and not self._is_one_piece(live, own, place, parent):
            self._mapping({}, live, own, place, parent)
        elif isinstance(live, list):
            self._list([], live, own, place, parent)
        elif is_hollow(live) or self._is_default(live, place, parent, {}):
            self.claims = self.claims or own is None
        else:
            self.found.append(Parting(place, live, None))

    def _gone(
        self, live: Json, own: Fields | None, place: tuple[Place, Step], beside: Body
    ) -> None:
        """Git does not say it any more. It goes, unless others own it or it is a default."""
        self.claims = True
        name, parent = name_of(place), name_of(place[0])
        if live is None or own is None or name == LAST_APPLIED:
            return
        if self._is_default(live, place, parent, beside):
            return
        # Of a mapping the fields are told one by one, of an item of a list that it goes.
        is_whole = not own or (SELF in own and not isinstance(place[1], str))
        if is_whole and not self._others_at(place):
            self.found.append(Parting(place, live, None))
        elif isinstance(live, dict):
            self.fields({}, live, own, place, name)
        elif isinstance(live, list) and own:
            self._list([], live, own, place, parent)

    def _mapping(
        self, wanted: Body, live: Body, own: Fields | None, place: Place, parent: str
    ) -> None:
        if self._is_one_piece(wanted, own, place, parent):
            self.claims = self.claims or own is None
            self._piece(wanted, live, place, parent)
        elif own is None and not wanted:
            self.claims = True
        else:
            self.fields(wanted, live, own, place, name_of(place))

    def _list(
        self, wanted: list[Json], live: list[Json], own: Fields | None, place: Place, parent: str
    ) -> None:
        mine = read_items(own) if own else NO_ITEMS
        names, is_set = self._told_apart(mine, place, parent)
        if names:
            items, there = index_items(wanted, names), index_items(live, names)
            if items is not None and there is not None:
                self._items(items, there, mine.keyed, (place, names))
                return
        elif is_set and all(map(is_scalar, [*wanted, *live])):
            self._values(wanted, live, mine.values, place)
            return
        self.claims = self.claims or (own is None and bool(wanted))
        self._piece(wanted, live, place, parent)

    def _told_apart(self, mine: Items, place: Place, parent: str) -> tuple[tuple[str, ...], bool]:
        """The keys of a list's items, and whether it is a set: as its owners tell, else by name."""
        if mine.names or mine.values:
            return mine.names, bool(mine.values)
        if self._is_builtin:
            known = merging_of(parent, name_of(place))
            return (() if self._is_definition else known.keys), known.is_set
        for fields in self._others_at(place):
            items = read_items(fields)
            if items.names or items.values:
                return items.names, bool(items.values)
        return (), False

    def _items(
        self,
        wanted: dict[tuple[Scalar, ...], Body],
        live: dict[tuple[Scalar, ...], Body],
        mine: dict[tuple[Scalar, ...], Fields],
        at: tuple[Place, tuple[str, ...]],
    ) -> None:
        place, names = at
        parent = name_of(place)
        met: dict[tuple[Scalar, ...], bool] = {}
        for key, item in wanted.items():
            values = key if key in live else _completed(key, live)
            there, inner = live.get(values), mine.get(values)
            met[values] = there is not None
            spot: Place = (place, Key(names, values))
            if there is None:
                self.found.append(Parting(spot, None, item))
            elif inner == {}:
                self._piece(item, there, spot, parent)
            else:
                self.fields(item, there, inner, spot, parent)
        for values, inner in mine.items():
            if values not in met:
                self._gone(live.get(values), inner, (place, Key(names, values)), {})
        self._order(live, [values for values, is_there in met.items() if is_there], place)

    def _values(
        self, wanted: list[Json], live: list[Json], mine: set[Scalar], place: Place
    ) -> None:
        said = [value for value in wanted if not isinstance(value, CONTAINERS)]
        there = {(value,): True for value in live if not isinstance(value, CONTAINERS)}
        for value in said:
            if (value,) not in there:
                self.found.append(Parting((place, Value(value)), None, value))
            elif value not in mine:
                self.claims = True
        for value in mine - set(said):
            self._gone(value if (value,) in there else None, {}, (place, Value(value)), {})
        self._order(there, [(value,) for value in said if (value,) in there], place)

    def _order(
        self,
        live: Iterable[tuple[Scalar, ...]],
        wanted: list[tuple[Scalar, ...]],
        place: Place,
    ) -> None:
        """Items that are in both come in the order that Git says."""
        if list(live) == wanted:
            return
        known = frozenset(wanted)
        there = [values for values in live if values in known]
        if there != wanted:
            self.found.append(Parting(place, _in_a_row(there), _in_a_row(wanted)))

    def _piece(self, wanted: Json, live: Json, place: Place, parent: str) -> None:
        """Compare what is replaced as a whole."""
        if isinstance(wanted, str) and wanted == live:
            return
        if isinstance(wanted, dict) and isinstance(live, dict):
            self._pieces(wanted, live, place)
        elif isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
            for number, (value, there) in enumerate(zip(wanted, live, strict=True)):
                self._piece(value, there, (place, number), parent)
        elif not self._same(wanted, live, place, parent):
            self.found.append(Parting(place, live, wanted))

    def _pieces(self, wanted: Body, live: Body, place: Place) -> None:
        """What only lives there goes, unless it is a default."""
        parent = name_of(place)
        for name, value in wanted.items():
            if name in live:
                self._piece(value, live[name], (place, name), parent)
            elif not is_hollow(value):
                self.found.append(Parting((place, name), None, value))
        for name, there in live.items():
            spot: Place = (place, name)
            if name not in wanted and not self._is_default(there, spot, parent, live):
                self.found.append(Parting(spot, there, None))

    def _same(self, wanted: Json, live: Json, place: Place, parent: str) -> bool:
        if is_equal(wanted, live):
            return True
        if not (is_scalar(wanted) and is_scalar(live)):
            return is_hollow(wanted) and is_hollow(live)
        if not self._is_builtin or self._is_definition:
            return False
        name = name_of(place)
        if same_scalar(wanted, live, name=name, parent=parent):
            return True
        if wanted is None and is_hollow(live):
            return True
        is_unsaid = wanted in {None, ""} or (not wanted and name in KEPT)
        return is_unsaid and self._is_default(live, place, parent, {})

    def _is_known(self, place: Place) -> bool:
        """Whether the place is of Kubernetes' own making: metadata is, of any kind."""
        return self._is_builtin or names_of(place)[0] == "metadata"

    def _is_one_piece(self, value: Body, own: Fields | None, place: Place, parent: str) -> bool:
        """Whether a mapping is replaced as a whole."""
        is_named = self._is_builtin and not self._is_definition
        if is_named and merging_of(parent, name_of(place)).is_one_piece:
            return True
        return bool(value) and own == {} and not any(self._others_at(place))

    def _is_default(self, live: Json, place: Place, parent: str, beside: Body) -> bool:
        if not self._is_builtin:
            return False
        if self._is_definition and parent not in {"", "spec", "names", "conversion"}:
            return False
        return is_default(live, name=name_of(place), parent=parent, beside=beside)

    def _others_at(self, place: Place) -> list[Fields]:
        """What the other managers own at a place and below."""
        if not place or not self._others:
            return self._others
        above, last = place
        return below(self._others_at(above), element_of(last))


def _completed(key: tuple[Scalar, ...], live: dict[tuple[Scalar, ...], Body]) -> tuple[Scalar, ...]:
    """Keys that an item does not say are those of the only live item that fits."""
    if None not in key:
        return key
    fitting = [
        known
        for known in live
        if all(mine in {None, other} for mine, other in zip(key, known, strict=True))
    ]
    return fitting[0] if len(fitting) == 1 else key


def _in_a_row(order: list[tuple[Scalar, ...]]) -> str:
    return ", ".join(" ".join(map(show_scalar, values)) for values in order)
