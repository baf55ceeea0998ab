"""Values of a Secret that a variable of Flux transforms are masked wherever they end up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.canaries import REPOSITORY, SUBSTITUTING
from tests.support.tidegate_runs import tidegate

PASSWORD = "Canary-In-The-Mine-7"
SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: given, namespace: flux-system}\n"
    f"stringData: {{PASSWORD: {PASSWORD}, PORT: '54321'}}\n"
)


def repository(directory: Path, **data: str) -> Path:
    """A Kustomization with a ConfigMap of these values."""
    (directory / "app").mkdir(parents=True)
    values = "".join(f"  {key}: {value}\n" for key, value in data.items())
    config = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata:\n{values}"
    (directory / "app" / "web.yaml").write_text(config)
    for name, text in {"given": SECRET, "web": SUBSTITUTING, "source": REPOSITORY}.items():
        (directory / f"{name}.yaml").write_text(text)
    return directory


@pytest.mark.parametrize(
    ("expression", "transformed"),
    [
        ("${PASSWORD,,}", "canary-in-the-mine-7"),
        ("${PASSWORD^^}", "CANARY-IN-THE-MINE-7"),
        ("${PASSWORD/Mine/Pit}", "Canary-In-The-Pit-7"),
        ("${PASSWORD:0:9}", "Canary-In"),
        ("user:${PASSWORD#*-}@db", "In-The-Mine-7"),
    ],
)
def test_a_transformed_value_is_masked(tmp_path: Path, expression: str, transformed: str) -> None:
    root = repository(tmp_path / "shop", plain="blue", url=f'"{expression}"')

    ran = tidegate("render", root)

    assert ran.returncode == 0, ran.stderr
    assert transformed not in ran.stdout + ran.stderr
    assert "***" in ran.stdout
    assert "blue" in ran.stdout
