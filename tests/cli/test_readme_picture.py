"""The picture in the README: `make picture` draws it, and it shows what is true today."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from examples.picture import PICTURE, ROOT, draw
from tests.support.recorded_wording import RecordedWording

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_what_make_picture_would_draw() -> None:
    drawn = draw()

    assert drawn == PICTURE.read_text(), "`make picture` draws it anew"


def test_the_picture_shows_what_runs_and_what_it_waits_for(wording: RecordedWording) -> None:
    drawn = ET.fromstring(draw())  # noqa: S314 - it is our own

    texts = [text.text or "" for text in drawn.iter(f"{SVG}text")]
    assert texts[:2] == ["$", "tidegate sync examples/first --sandbox"]
    wording(texts[texts.index("Job default/migrate") + 1])


def test_the_readme_shows_the_picture_on_its_first_screen() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:24])

    shown = re.findall(r'src="([^"]+)"|!\[[^]]*\]\(([^)]+)\)', first_screen)
    assert [item or other for item, other in shown] == ["docs/images/rollout.svg"]
