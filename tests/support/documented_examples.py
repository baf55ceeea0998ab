"""Examples of the documentation, and which of them need a cluster."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
EXAMPLE = re.compile(r"(?<=```console\n)\$ (tidegate [^\n]*)\n(.*?)(?=```)", re.DOTALL)
ON_A_CLUSTER = "--context test"
"""Such an example is run on the real control plane."""
EXAMPLES = [(page, result[1]) for page in PAGES for result in EXAMPLE.finditer(page.read_text())]
