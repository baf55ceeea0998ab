"""Writes every file of the charts that is made of others."""

from __future__ import annotations

from pathlib import Path

from charts.made import made_files, stale_files


def main() -> None:
    charts = Path(__file__).parent
    for path in stale_files(charts):
        path.unlink()
    for path, text in made_files(charts).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
