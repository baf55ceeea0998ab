"""Go templates of sets, by the Helm SDK and in Argo CD's words."""

from __future__ import annotations

import pytest

from tidegate.errors import RenderError
from tidegate.render.helm import helm_workers
from tidegate.render.helm.go_templates import render_texts, translate


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ .x | slugify 5 }}", '{{ .x | list 5  | include "tidegate.slugify" }}'),
        ("{{ (slugify .x) | upper }}", '{{ (list .x | include "tidegate.slugify" ) | upper }}'),
        ("{{ normalize .x }}", '{{ include "tidegate.normalize" .x }}'),
        ('{{ "slugify" }}{{/* env */}} env', '{{ "slugify" }}{{/* env */}} env'),
        ("{{ .env.slugify }}", "{{ .env.slugify }}"),
    ],
)
def test_what_argo_cd_adds_is_put_in_other_words(text: str, said: str) -> None:
    assert translate(text) == said


@pytest.mark.parametrize("name", ["env", "expandenv", "getHostByName", "include", "tpl", "lookup"])
def test_what_argo_cd_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(RenderError, match=f"no function `{name}`"):
        translate(f'{{{{ {name} "x" }}}}')


async def test_many_texts_are_rendered_with_many_parameters() -> None:
    texts = ("{{ .name | upper }}", "{{ .missing }}", "{{ .name | slugify 3 }}<{{ .n }}>")

    async with helm_workers(count=1) as workers:
        made = await render_texts(texts, ({"name": "web", "n": 2}, {"name": "A_b c"}), workers)

    assert made == (
        ("WEB", "<no value>", "web<2>"),
        ("A_B C", "<no value>", "a-b<<no value>>"),
    )


async def test_what_is_missing_is_an_error_where_the_set_says_so_unless_it_may_be() -> None:
    strict = ("missingkey=error",)
    async with helm_workers(count=1) as workers:
        with pytest.raises(RenderError, match="no entry for key"):
            await render_texts(("{{ .x }}",), ({"y": 1},), workers, strict)
        made = await render_texts(
            ("{{ .x }}", "{{ .y }}"), ({"y": 1},), workers, strict, lenient=True
        )
        with pytest.raises(RenderError, match="no option `missingkey=never`"):
            await render_texts(("{{ .x }}",), ({"y": 1},), workers, ("missingkey=never",))

    assert made == (("{{ .x }}", "1"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ .a }}", "{{ .a }}"),
        ("{{ .a.b }}", '{{ (dig "a" "b" nil .) }}'),
        ("{{ $.a.b.c | upper }}", '{{ (dig "a" "b" "c" nil $) | upper }}'),
        ("{{ $x.a.b }}", '{{ (dig "a" "b" nil $x) }}'),
        ('{{ ".a.b" }} .a.b {{/* .a.b */}}', '{{ ".a.b" }} .a.b {{/* .a.b */}}'),
        ("{{ (index .l 0).a.b }}", "{{ (index .l 0).a.b }}"),
    ],
)
def test_a_field_of_a_field_is_asked_for_so_that_it_may_be_missing(text: str, said: str) -> None:
    assert translate(text, lenient=True) == said


async def test_a_field_of_what_is_not_there_is_not_there_either() -> None:
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
        made = await render_texts(texts, (there,), workers)
        with pytest.raises(RenderError, match="nil pointer evaluating"):
            await render_texts(("{{ .a.b }}",), (there,), workers, ("missingkey=zero",))
        with pytest.raises(RenderError, match="cannot be rendered"):
            await render_texts(("{{ .a.b }}",), ({"a": 1},), workers)

    assert made == (("<no value>", "<no value>", "no", "d", "", "<no value>7"),)
