"""Texts in a comment: Markdown shows them as they are, and GitHub links nothing in them."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.rollout_cases import every_case
from tidegate.report.order_diff.markdown import markdown_text

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
INVISIBLE = "\u200b"
PIECES = (
    *"`*_[]()<>#@~|\\!-+=.:/&;$^0a \n\x1b\u202e",
    *("www.", "https://", "GH-", "1.", "1)", "::set-output", "&amp;", "&#60;", "```", "---", "<b>"),
)
LINKED = re.compile(r"@\w|#\d|\bGH-\d|\bwww\.|://|::", re.IGNORECASE)


def inline_tokens(text: str) -> list[Token]:
    """Return the tokens of a text in a list item."""
    tokens = MARKDOWN.parse(f"- {text}\n")
    kinds = [token.type for token in tokens if token.type != "inline"]
    assert kinds in (
        [
            *("bullet_list_open", "list_item_open", "paragraph_open"),
            *("paragraph_close", "list_item_close", "bullet_list_close"),
        ],
        ["bullet_list_open", "list_item_open", "list_item_close", "bullet_list_close"],
    ), (text, kinds)
    return [child for token in tokens for child in token.children or ()]


@every_case
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12).map("".join))
@example("x`](http://evil)<img src=x>@team #1 ::set-output name=a::b")
@example("1. www.example.com `GH-1` GH-1")
def test_a_name_is_displayed_and_never_markup(name: str) -> None:
    tokens = inline_tokens(markdown_text(name))

    assert {token.type for token in tokens} <= {"text", "text_special", "html_inline"}, tokens
    markup = [token.content for token in tokens if token.type == "html_inline"]
    assert markup == ["<code>", "</code>"] * (len(markup) // 2)
    displayed = "".join(token.content for token in tokens if token.type != "html_inline")
    printable = "".join(letter if letter.isprintable() else " " for letter in name)
    words = re.sub(r"`([^`]+)`", r"\1", " ".join(printable.split()))
    assert displayed.replace(INVISIBLE, "") == words.replace(INVISIBLE, "")
    assert not LINKED.search(displayed), displayed
