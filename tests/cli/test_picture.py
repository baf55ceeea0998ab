"""The picture in the README: `make picture` draws it, and it shows what is true today."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from examples.picture import PICTURE, ROOT, draw

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_what_make_picture_would_draw() -> None:
    drawn = draw()

    assert drawn == PICTURE.read_text(), "`make picture` draws it anew"


def test_the_picture_tells_what_runs_and_what_it_waits_for() -> None:
    drawn = ET.fromstring(draw())  # noqa: S314 - it is our own

    words = " ".join(text.text or "" for text in drawn.iter(f"{SVG}text"))
    assert "$ tidegate sync examples/first --sandbox" in words
    assert "Job default/migrate 0 of 1 pods have succeeded, 1 is active" in words


def test_the_readme_shows_the_picture_on_its_first_screen() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:24])

    shown = re.findall(r'src="([^"]+)"|!\[[^]]*\]\(([^)]+)\)', first_screen)
    assert [item or other for item, other in shown] == ["docs/images/rollout.svg"]
