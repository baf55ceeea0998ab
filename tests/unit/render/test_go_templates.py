"""Go templates of ApplicationSets, rendered by the Helm SDK with the functions of Argo CD."""

from __future__ import annotations

import pytest

from tidegate.errors import RenderError
from tidegate.render.helm import helm_workers
from tidegate.render.helm.go_templates import render_texts, translate


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("{{ .x | slugify 5 }}", '{{ .x | list 5  | include "tidegate.slugify" }}'),
        ("{{ (slugify .x) | upper }}", '{{ (list .x | include "tidegate.slugify" ) | upper }}'),
        ("{{ normalize .x }}", '{{ include "tidegate.normalize" .x }}'),
        ('{{ "slugify" }}{{/* env */}} env', '{{ "slugify" }}{{/* env */}} env'),
        ("{{ .env.slugify }}", "{{ .env.slugify }}"),
    ],
)
def test_functions_that_argo_cd_adds_are_translated(text: str, translation: str) -> None:
    assert translate(text) == translation


@pytest.mark.parametrize("name", ["env", "expandenv", "getHostByName", "include", "tpl", "lookup"])
def test_a_function_that_argo_cd_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(RenderError) as refusal:
        translate(f'{{{{ {name} "x" }}}}')

    assert refusal.value.code == "render.template"
    assert f"`{name}`" in refusal.value.problem


async def test_many_texts_are_rendered_with_many_parameters() -> None:
    texts = ("{{ .name | upper }}", "{{ .missing }}", "{{ .name | slugify 3 }}<{{ .n }}>")

    async with helm_workers(count=1) as workers:
        rendered = await render_texts(texts, ({"name": "web", "n": 2}, {"name": "A_b c"}), workers)

    assert rendered == (
        ("WEB", "<no value>", "web<2>"),
        ("A_B C", "<no value>", "a-b<<no value>>"),
    )


async def test_a_missing_parameter_is_an_error_by_option_unless_rendering_is_lenient() -> None:
    strict = ("missingkey=error",)
    async with helm_workers(count=1) as workers:
        with pytest.raises(RenderError, match="no entry for key"):
            await render_texts(("{{ .x }}",), ({"y": 1},), workers, strict)
        rendered = await render_texts(
            ("{{ .x }}", "{{ .y }}"), ({"y": 1},), workers, strict, lenient=True
        )
        with pytest.raises(RenderError, match="`missingkey=never`"):
            await render_texts(("{{ .x }}",), ({"y": 1},), workers, ("missingkey=never",))

    assert rendered == (("{{ .x }}", "1"),)


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("{{ .a }}", "{{ .a }}"),
        ("{{ .a.b }}", '{{ (dig "a" "b" nil .) }}'),
        ("{{ $.a.b.c | upper }}", '{{ (dig "a" "b" "c" nil $) | upper }}'),
        ("{{ $x.a.b }}", '{{ (dig "a" "b" nil $x) }}'),
        ('{{ ".a.b" }} .a.b {{/* .a.b */}}', '{{ ".a.b" }} .a.b {{/* .a.b */}}'),
        ("{{ (index .l 0).a.b }}", "{{ (index .l 0).a.b }}"),
    ],
)
def test_a_nested_field_is_translated_so_that_it_may_be_missing(
    text: str, translation: str
) -> None:
    assert translate(text, lenient=True) == translation


async def test_a_field_of_a_missing_field_is_missing() -> None:
    texts = (
        "{{ .a.b }}",
        "{{ $.a.b.c }}",
        "{{ if .a.b }}yes{{ else }}no{{ end }}",
        '{{ .a.b | default "d" }}',
        "{{ range .a.b }}x{{ end }}",
        "{{ $x := .there }}{{ $x.is.not }}{{ $x.is.so }}",
    )
    there = {"there": {"is": {"so": 7}}}

    async with helm_workers(count=1) as workers:
        rendered = await render_texts(texts, (there,), workers)
        with pytest.raises(RenderError, match="nil pointer evaluating"):
            await render_texts(("{{ .a.b }}",), (there,), workers, ("missingkey=zero",))
        with pytest.raises(RenderError) as refusal:
            await render_texts(("{{ .a.b }}",), ({"a": 1},), workers)

    assert rendered == (("<no value>", "<no value>", "no", "d", "", "<no value>7"),)
    assert refusal.value.code == "render.template"
    assert '<dig "a" "b" nil .>' in refusal.value.problem
