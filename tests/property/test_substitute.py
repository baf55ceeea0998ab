"""Substitution holds for any text: it changes only what it must, and knows what it refuses."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from tidegate.documents import Document, read_documents
from tidegate.documents.dump import to_json
from tidegate.errors import Location, RenderError
from tidegate.model.k8s.objects import Json
from tidegate.render.envsubst.layout import to_flux_yaml
from tidegate.render.envsubst.template import SubstitutionError, UnsetVariableError, expand
from tidegate.render.substitute import Variables, substitute

TOKENS = [
    *"ab$ {}:/#%^,=-+?!*[]\\\n\"'é1",
    "${",
    "$$",
    "${a}",
    "${b:-",
    "${a:1",
    "${a/",
    "${a##",
]
texts = st.lists(st.sampled_from(TOKENS), max_size=12).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
)
scalars: st.SearchStrategy[Json] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
bodies = st.dictionaries(
    texts,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=12,
    ),
    max_size=4,
)


def has_merge_key(value: Json) -> bool:
    if isinstance(value, dict):
        return "<<" in value or any(map(has_merge_key, value.values()))
    return isinstance(value, list) and any(map(has_merge_key, value))


@given(texts)
def test_a_doubled_dollar_is_a_dollar(text: str) -> None:
    assert expand(text.replace("$", "$$"), {}, strict=True).decode() == text


@given(texts, st.dictionaries(st.sampled_from("ab"), texts), st.booleans())
def test_a_text_is_expanded_or_rejected(
    text: str,
    variables: dict[str, str],
    strict: bool,  # noqa: FBT001
) -> None:
    try:
        expanded = expand(text, variables, strict=strict)
    except SubstitutionError:
        expanded = None
    except UnsetVariableError:
        assert strict
        expanded = None

    assert "${" in text or expanded == text.replace("$$", "$").encode()


@given(texts, st.dictionaries(st.sampled_from("ab"), texts))
def test_strictness_refuses_and_never_changes(text: str, variables: dict[str, str]) -> None:
    try:
        strict = expand(text, variables, strict=True)
    except (SubstitutionError, UnsetVariableError):
        return

    assert strict == expand(text, variables, strict=False)


@given(texts)
def test_a_default_is_the_value_of_what_is_unset(text: str) -> None:
    assume("}" not in text and "${" not in text and not text.endswith("$"))

    assert expand("${b:-" + text + "}", {}, strict=True).decode() == text


@given(bodies)
def test_an_object_without_variables_is_unchanged(body: dict[str, Json]) -> None:
    assume(body and not has_merge_key(body) and "kind" not in body)

    (document,) = read_documents(to_flux_yaml(body), "a.yaml")

    assert to_json(document.body) == to_json(body)


@given(bodies)
def test_an_object_with_escaped_variables_is_restored(body: dict[str, Json]) -> None:
    assume(body and not has_merge_key(body))
    escaped = _escape(body)
    assert isinstance(escaped, dict)

    done = substitute(Document(escaped, Location("a.yaml")), Variables({"x": "y"}))

    assert to_json(done.body) == to_json(body)


@given(bodies, texts)
def test_any_value_changes_the_object_or_is_rejected(body: dict[str, Json], value: str) -> None:
    document = Document({**body, "v": "${a}"}, Location("a.yaml"))

    try:
        done = substitute(document, Variables({"a": value}), strict=False)
    except RenderError:
        return

    assert done.location == document.location
    assert "v" in done.body


def _escape(value: Json) -> Json:
    if isinstance(value, dict):
        return {key.replace("$", "$$"): _escape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escape(item) for item in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
