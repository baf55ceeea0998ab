"""`tidegate sandbox run`, from outside: the stories that users bring."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "migration" / "shop.yaml"
SLOW = ROOT / "examples" / "migration" / "slow-database.yaml"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidegate", "sandbox", "run", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def with_budget(folder: Path, failures: int) -> Path:
    """The shop whose migration may fail so often."""
    path = folder / "shop.yaml"
    path.write_text(SHOP.read_text().replace("backoffLimit: 1", f"backoffLimit: {failures}"))
    return path


def test_a_migration_before_its_database_fails_and_names_the_service(tmp_path: Path) -> None:
    story = run(with_budget(tmp_path, 1), "--scenario", SLOW).stdout

    assert "Service default/db has no ready endpoints" in story
    assert "Failed=True (BackoffLimitExceeded)" in story
    assert "Complete=True" not in story


def test_a_migration_with_more_patience_recovers_when_the_database_is_there(
    tmp_path: Path,
) -> None:
    story = run(with_budget(tmp_path, 6), "--scenario", SLOW).stdout

    assert "Service default/db has no ready endpoints" in story
    assert "Complete=True" in story
    assert "Failed=True" not in story


def test_a_job_that_needs_a_secret_nobody_makes_hangs_until_its_deadline(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        """
apiVersion: batch/v1
kind: Job
metadata: {name: hook}
spec:
  activeDeadlineSeconds: 60
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: hook
        image: hook:1
        env:
        - name: PASSWORD
          valueFrom: {secretKeyRef: {name: db-credentials, key: password}}
"""
    )

    lines = run(job, "-o", "json").stdout.splitlines()

    told = [(line["at"], line["what"]) for line in map(json.loads, lines)]
    held = [what for _, what in told if "CreateContainerConfigError" in what]
    assert held
    assert 'secret "db-credentials" not found' in held[0]
    failed = [at for at, what in told if "Failed=True (DeadlineExceeded)" in what]
    assert failed
    assert 60_000 <= failed[0] < 65_000


def test_the_same_command_says_the_same_twice() -> None:
    first, second = (run(SHOP, "--scenario", SLOW, "--seed", "7") for _ in range(2))

    assert first.stdout == second.stdout
    assert run(SHOP, "--scenario", SLOW, "--seed", "8").stdout != first.stdout


def test_mistakes_in_a_scenario_are_told_with_their_lines(tmp_path: Path) -> None:
    wrong = tmp_path / "scenario.yaml"
    wrong.write_text("faults:\n- effect: explode\n- effect: slow\n  by: soon\n")

    ran = run(SHOP, "--scenario", wrong)

    assert ran.returncode == 3
    assert f"at {wrong}:2" in ran.stderr
    assert f"at {wrong}:4" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_manifest_that_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [\n")

    ran = run(broken)

    assert ran.returncode == 3
    assert f"at {broken}:" in ran.stderr


def test_an_object_of_a_kind_that_nobody_serves_is_refused_in_words(tmp_path: Path) -> None:
    custom = tmp_path / "custom.yaml"
    custom.write_text(
        "apiVersion: kinda.rocks/v1beta1\nkind: Database\nmetadata: {name: shop}\nspec: {}\n"
    )

    story = run(custom).stdout

    assert "refused: the server does not serve kinda.rocks/v1beta1 Database" in story
