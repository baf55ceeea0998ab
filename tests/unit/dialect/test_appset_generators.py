"""Generators, one by one, in the words of Argo CD's own documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.support.appset_runner import Runner, a_set
from tests.support.recorded_wording import RecordedWording
from tidegate.dialect.argo.appset.combined_generators import generate_parameters
from tidegate.dialect.argo.appset.external_generators import slug
from tidegate.dialect.argo.appset.parameters import deep_merge, go_format
from tidegate.dialect.argo.appset.path_patterns import compile_file_pattern, list_directories
from tidegate.dialect.argo.appset.queries import (
    FileContentQuery,
    FileListQuery,
    GeneratorContext,
    GeneratorError,
    GeneratorInputs,
    Params,
    RegisteredCluster,
    TemplateLanguage,
)
from tidegate.dialect.argo.appset.templates import fill_text
from tidegate.model.k8s.objects import Json, JsonObject

URL = "https://git.example/shop.git"
PLAIN, GO = TemplateLanguage(), TemplateLanguage(is_go=True)


async def params(
    entry: JsonObject,
    language: TemplateLanguage = PLAIN,
    known: GeneratorInputs | None = None,
    files: dict[str, str] | None = None,
) -> list[Params]:
    runner = Runner(files or {})
    ((_, result),) = await runner.run(
        generate_parameters(entry, GeneratorContext(known or GeneratorInputs(), language))
    )
    return result


def a_list(*elements: Json) -> JsonObject:
    return {"list": {"elements": [*elements]}}


def git(**body: Json) -> JsonObject:
    return {"git": {"repoURL": URL, "revision": "main", **body}}


async def test_a_list_generator_combines_elements_and_elements_yaml() -> None:
    entry: JsonObject = {
        "list": {
            "elements": [{"name": "a", "values": {"tier": "x"}}],
            "elementsYaml": "- name: b\n- name: c\n",
        }
    }

    assert await params(entry) == [{"name": "a", "values.tier": "x"}, {"name": "b"}, {"name": "c"}]


async def test_a_number_in_a_list_requires_go_templates() -> None:
    assert await params(a_list({"replicas": 3}), GO) == [{"replicas": 3}]
    with pytest.raises(GeneratorError) as refused:
        await params(a_list({"replicas": 3}))
    assert refused.value.code == "appset.element"
    assert refused.value.path[-1] == "replicas"


TREE = dict.fromkeys(
    ["apps/web/a.yaml", "apps/web-api/a.yaml", "apps/web/eu/a.yaml", "apps/.git/a.yaml"], ""
)


async def test_directories_are_sorted_and_exclusions_take_precedence() -> None:
    expected: list[Json] = [{"path": "apps/web-*", "exclude": True}, {"path": "apps/*"}]

    assert list_directories(TREE) == ["apps", "apps/web", "apps/web/eu", "apps/web-api"]
    result = await params(git(directories=expected), files=TREE)
    assert result == [
        {
            "path": "apps/web",
            "path.basename": "web",
            "path.basenameNormalized": "web",
            "path[0]": "apps",
            "path[1]": "web",
        }
    ]


async def test_with_go_templates_a_path_is_a_mapping_below_its_prefix() -> None:
    entry = git(directories=[{"path": "apps/web"}], pathParamPrefix="p")

    (param,) = await params(entry, GO, files=TREE)

    assert param == {
        "p": {
            "path": {
                "path": "apps/web",
                "basename": "web",
                "basenameNormalized": "web",
                "segments": ["apps", "web"],
            }
        }
    }


async def test_an_empty_file_has_its_place_alone() -> None:
    """Acceptance case 76."""
    path = "path/dir/file_name.yaml"

    (param,) = await params(git(files=[{"path": path}]), files={path: ""})

    assert param == {
        "path": "path/dir",
        "path.basename": "dir",
        "path.basenameNormalized": "dir",
        "path.filename": "file_name.yaml",
        "path.filenameNormalized": "file-name.yaml",
        "path[0]": "path",
        "path[1]": "dir",
    }


async def test_parameters_of_files_are_flattened_and_printed_like_go() -> None:
    files = {"a.json": '{"a": {"b": [1, 1000000, 0.5]}, "c": true, "d": null}'}

    (param,) = await params(git(files=[{"path": "*.json"}]), files=files)

    assert {key: param[key] for key in ("a.b.0", "a.b.1", "a.b.2", "c", "d")} == {
        "a.b.0": "1",
        "a.b.1": "1e+06",
        "a.b.2": "0.5",
        "c": "true",
        "d": "<nil>",
    }


async def test_matching_files_are_read_once() -> None:
    runner = Runner({"a.yaml": "name: a", "b.txt": "x"})

    await runner.run(
        generate_parameters(
            git(files=[{"path": "*.yaml"}]), GeneratorContext(GeneratorInputs(), PLAIN)
        )
    )

    assert runner.requests == [
        FileListQuery(URL, "main"),
        FileContentQuery(URL, "main", ("a.yaml",)),
    ]


@pytest.mark.parametrize(
    ("pattern", "path", "plain", "doublestar"),
    [
        ("apps/*/config.yaml", "apps/web/eu/config.yaml", True, False),
        ("apps/**/config.yaml", "apps/config.yaml", False, True),
        ("apps/**/config.yaml", "apps/a/b/config.yaml", True, True),
        ("apps", "apps/web/config.yaml", True, False),
        ("apps/web/config.yaml", "apps/web/config.yaml", True, True),
    ],
)
def test_patterns_of_files_are_read_by_git_or_by_a_switch(
    pattern: str, path: str, *, plain: bool, doublestar: bool
) -> None:
    assert compile_file_pattern(pattern, doublestar=False)(path) is plain
    assert compile_file_pattern(pattern, doublestar=True)(path) is doublestar


EAST = RegisteredCluster(name="East_1", server="https://east", labels={"env": "prod"})


async def test_the_local_cluster_is_last_unless_clusters_are_selected() -> None:
    known = GeneratorInputs(clusters=(EAST,))
    chosen: JsonObject = {"clusters": {"selector": {"matchLabels": {"env": "prod"}}}}

    result = await params({"clusters": {"values": {"x": "{{name}}!"}}}, known=known)

    assert [item["name"] for item in result] == ["East_1", "in-cluster"]
    assert result[0]["nameNormalized"] == "east-1"
    assert result[0]["metadata.labels.env"] == "prod"
    assert result[0]["values.x"] == "East_1!"
    assert [param["name"] for param in await params(chosen, known=known)] == ["East_1"]
    (flat,) = await params({"clusters": {"flatList": True}}, GO, known)
    assert list(flat) == ["clusters"]


async def test_a_matrix_pairs_and_the_second_sees_the_first() -> None:
    pair: list[Json] = [a_list({"app": "web"}, {"app": "cart"})]
    second = git(directories=[{"path": "{{app}}/*"}])
    files = {"web/eu/a": "", "web/us/a": "", "cart/eu/a": ""}

    result = await params({"matrix": {"generators": [*pair, second]}}, files=files)

    assert [(item["app"], item["path"]) for item in result] == [
        ("web", "web/eu"),
        ("web", "web/us"),
        ("cart", "cart/eu"),
    ]


@pytest.mark.parametrize("count", [1, 3])
async def test_a_matrix_has_two_generators(count: int) -> None:
    """Acceptance case 75."""
    with pytest.raises(GeneratorError) as refused:
        await params({"matrix": {"generators": [a_list({"a": "b"})] * count}})
    assert (refused.value.code, refused.value.path[-1]) == ("appset.matrix", "generators")


async def test_conflicting_matrix_values_are_an_error_without_go_templates(
    wording: RecordedWording,
) -> None:
    """Acceptance case 75."""
    pair: JsonObject = {"matrix": {"generators": [a_list({"a": "1"}), a_list({"a": "2"})]}}

    assert await params(pair, GO) == [{"a": "1"}]
    with pytest.raises(GeneratorError) as refused:
        await params(pair)
    assert refused.value.code == "appset.matrix"
    wording(refused.value.message)


async def test_a_merge_keeps_what_the_first_finds() -> None:
    """Acceptance case 75."""
    three: list[Json] = [
        a_list({"a": "1_1", "b": "same", "c": "1_3"}),
        a_list({"a": "2_1", "b": "same"}),
        a_list({"b": "different"}),
    ]

    result = await params({"merge": {"mergeKeys": ["b"], "generators": three}})

    assert result == [{"a": "2_1", "b": "same", "c": "1_3"}]


@pytest.mark.parametrize(
    "body",
    [
        {"mergeKeys": ["a"], "generators": [a_list({"a": "1"})]},
        {"generators": [a_list({"a": "1"})] * 2},
        {"mergeKeys": ["x"], "generators": [a_list({"a": "1"}, {"a": "2"})] * 2},
    ],
    ids=["one generator", "no keys", "not unique"],
)
async def test_an_invalid_merge_is_reported(body: JsonObject, wording: RecordedWording) -> None:
    with pytest.raises(GeneratorError) as refused:
        await params({"merge": body})

    assert refused.value.code == "appset.merge"
    wording(refused.value.message)


async def test_generators_can_be_nested_one_level(wording: RecordedWording) -> None:
    item: JsonObject = {"matrix": {"generators": [a_list({"a": "1"}), a_list({"b": "2"})]}}
    two: JsonObject = {"matrix": {"generators": [item, a_list({"c": "3"})]}}

    assert await params(two) == [{"a": "1", "b": "2", "c": "3"}]
    with pytest.raises(GeneratorError) as refused:
        await params({"matrix": {"generators": [two, a_list({"d": "4"})]}})
    assert refused.value.code == "appset.nested"
    wording(refused.value.message)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ({"matchLabels": {"tier.level": "1"}}, ["a"]),
        ({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev"]}]}, ["b"]),
        ({"matchExpressions": [{"key": "env", "operator": "Exists"}]}, ["a"]),
        ({}, ["a", "b"]),
    ],
)
async def test_a_selector_chooses_by_flat_parameters(
    selector: JsonObject, names: list[str]
) -> None:
    elements = a_list({"name": "a", "env": "dev", "tier": {"level": 1}}, {"name": "b"})

    result = await params({**elements, "selector": selector}, GO)

    assert [item["name"] for item in result] == names


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"lists": {}}, "appset.generator"),
        ({}, "appset.generator"),
        ({"git": {"repoURL": URL}}, "appset.git"),
        (git(files=[{"path": "[a"}]), "appset.pattern"),
        ({"pullRequest": {}}, "appset.unknown"),
        (
            {**a_list(), "selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            "appset.selector",
        ),
    ],
)
async def test_a_generator_that_argo_cd_rejects_is_an_error(entry: JsonObject, code: str) -> None:
    with pytest.raises(GeneratorError) as refused:
        await params(entry)
    assert refused.value.code == code


async def test_results_of_remote_servers_can_be_given() -> None:
    pull: Params = {"number": 7, "branch": "Feat/New_Cart", "head_sha": "0123456789", "labels": []}
    repository: Params = {"repository": "web", "sha": "0123456789", "branch": "Main_1"}
    decision: Params = {"name": "East_1", "weight": 3}
    known = GeneratorInputs(
        clusters=(EAST,),
        provided={
            "pullRequest": (pull,),
            "scmProvider": (repository,),
            "plugin": ({"a": {"b": 1}},),
            "clusterDecisionResource": (decision, {"name": "nowhere"}),
        },
    )

    (pulled,) = await params({"pullRequest": {"values": {"x": "{{number}}"}}}, known=known)
    (scm,) = await params({"scmProvider": {}}, known=known)
    (plugin,) = await params({"plugin": {"input": {"parameters": {"k": "v"}}}}, known=known)
    (decided,) = await params({"clusterDecisionResource": {"values": {"v": "1"}}}, known=known)

    assert pulled["number"] == "7"
    assert (pulled["branch_slug"], pulled["head_short_sha"]) == ("feat-new-cart", "01234567")
    assert (pulled["values.x"], "labels" in pulled) == ("7", False)
    assert (scm["short_sha_7"], scm["branchNormalized"]) == ("0123456", "main-1")
    assert plugin == {"a.b": "1", "generator": {"input": {"parameters": {"k": "v"}}}}
    assert decided == {
        "name": "East_1",
        "server": "https://east",
        "weight": "3",
        "values.v": "1",
    }


def test_a_slug_ends_at_a_word_boundary() -> None:
    assert slug("x" * 45 + "-" + "y" * 10) == "x" * 45
    assert slug("é_a&b") == "e-aandb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ name }}-{{name}}", "web-web"),
        ("{{unknown}} {{}}", "{{unknown}} {{}}"),
        ("{{number}}", "{{number}}"),
        ("{{\nname}}", "{{\nname}}"),
        ("no }} tags {{", "no }} tags {{"),
    ],
)
def test_a_plain_template_leaves_what_it_does_not_know(text: str, expected: str) -> None:
    assert fill_text(text, {"name": "web", "number": 3}) == expected


def plain(element: dict[str, str]) -> Json:
    return dict(element)


ELEMENTS = some.lists(
    some.dictionaries(some.sampled_from("abc"), some.sampled_from("xyz"), min_size=1), max_size=4
)


@given(ELEMENTS, ELEMENTS, some.lists(some.sampled_from("abc"), min_size=1, unique=True))
async def test_a_merge_is_what_a_plain_loop_makes_of_it(
    base: list[dict[str, str]], over: list[dict[str, str]], keys: list[str]
) -> None:
    def key(item: dict[str, str]) -> tuple[str | None, ...]:
        return tuple(item.get(name) for name in keys)

    both: list[Json] = [a_list(*map(plain, base)), a_list(*map(plain, over))]
    request = params({"merge": {"mergeKeys": [*keys], "generators": both}})
    if any(len({key(item) for item in many}) < len(many) for many in (base, over)):
        with pytest.raises(GeneratorError):
            await request
        return
    expected = []
    for entry in base:
        for other in over:
            if key(entry) == key(other):
                entry = {**entry, **other}  # noqa: PLW2901 - as naive as can be
        expected.append(entry)
    assert await request == expected


@given(ELEMENTS, ELEMENTS)
async def test_a_matrix_is_what_two_loops_make_of_it(
    first: list[dict[str, str]], second: list[dict[str, str]]
) -> None:
    pair: list[Json] = [a_list(*map(plain, first)), a_list(*map(plain, second))]

    result = await params({"matrix": {"generators": pair}}, GO)

    assert result == [{**other, **item} for item in first for other in second]


@given(some.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_printed_like_go(number: float) -> None:
    assert float(go_format(number)) == number


def test_mappings_are_merged_at_any_depth() -> None:
    assert deep_merge({"a": {"b": 1, "c": [1]}}, {"a": {"c": [2], "d": None}}) == {
        "a": {"b": 1, "c": [2], "d": None}
    }


async def test_the_template_of_a_generator_overrides_that_of_the_appset() -> None:
    unit_resource: Json = {"metadata": {"labels": {"own": "{{name}}"}}}
    base: Json = {"metadata": {"name": "{{name}}", "labels": {"a": "b", "own": "no"}}, "spec": {}}

    made = await Runner().generated(
        a_set({"list": {"elements": [{"name": "web"}], "template": unit_resource}}, template=base)
    )

    assert made.applications[0].labels == {"a": "b", "own": "web"}
