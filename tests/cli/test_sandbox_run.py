"""`tidegate sandbox run` on manifests as users write them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import tidegate

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "migration" / "shop.yaml"
SLOW = ROOT / "examples" / "migration" / "slow-database.yaml"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return tidegate("sandbox", "run", *arguments)


def with_budget(folder: Path, failures: int) -> Path:
    """The shop whose migration may fail so often."""
    path = folder / "shop.yaml"
    path.write_text(SHOP.read_text().replace("backoffLimit: 1", f"backoffLimit: {failures}"))
    return path


def test_a_migration_before_its_database_fails_and_names_the_service(tmp_path: Path) -> None:
    output = run(with_budget(tmp_path, 1), "--scenario", SLOW).stdout

    assert any(
        "PodFailed" in line and "Service default/db" in line and "dial-fails" in line
        for line in output.splitlines()
    )
    assert "Failed=True (BackoffLimitExceeded)" in output
    assert "Complete=True" not in output


def test_a_migration_with_more_patience_recovers_when_the_database_is_there(
    tmp_path: Path,
) -> None:
    output = run(with_budget(tmp_path, 6), "--scenario", SLOW).stdout

    assert any(
        "PodFailed" in line and "Service default/db" in line and "dial-fails" in line
        for line in output.splitlines()
    )
    assert "Complete=True" in output
    assert "Failed=True" not in output


def test_a_job_that_needs_a_missing_secret_hangs_until_its_deadline(tmp_path: Path) -> None:
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

    messages = [(line["at"], line["what"]) for line in map(json.loads, lines)]
    held = [what for _, what in messages if "CreateContainerConfigError" in what]
    assert held
    assert 'secret "db-credentials" not found' in held[0]
    failed = [at for at, what in messages if "Failed=True (DeadlineExceeded)" in what]
    assert failed
    assert 60_000 <= failed[0] < 65_000


def test_a_repeated_command_has_the_same_output() -> None:
    first, second = (run(SHOP, "--scenario", SLOW, "--seed", "7") for _ in range(2))

    assert first.stdout == second.stdout
    assert run(SHOP, "--scenario", SLOW, "--seed", "8").stdout != first.stdout


def test_mistakes_in_a_scenario_are_reported_with_their_lines(tmp_path: Path) -> None:
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


def test_an_object_of_an_unknown_kind_is_rejected_with_a_message(
    wording: RecordedWording, tmp_path: Path
) -> None:
    custom = tmp_path / "custom.yaml"
    custom.write_text(
        "apiVersion: kinda.rocks/v1beta1\nkind: Database\nmetadata: {name: shop}\nspec: {}\n"
    )

    output = run(custom).stdout

    wording(line for line in output.splitlines() if "Database default/shop" in line)


CERTIFICATE = """
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: self}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec: {secretName: web-tls, issuerRef: {name: self, kind: ClusterIssuer}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: check}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: check, image: "check:1"}]
      volumes: [{name: tls, secret: {secretName: web-tls}}]
"""


def results_by_name(*arguments: str | Path) -> dict[str, list[tuple[int, str]]]:
    """What is said of each object, with the moment in milliseconds."""
    ran = run(*arguments, "-o", "json")
    assert ran.returncode == 0, ran.stderr
    result: dict[str, list[tuple[int, str]]] = {}
    for line in map(json.loads, ran.stdout.splitlines()):
        result.setdefault(line["object"], []).append((line["at"], line["what"]))
    return result


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_an_operator_that_is_given_issues_a_certificate_that_a_job_waits_for(
    wording: RecordedWording,
    tmp_path: Path,
) -> None:
    manifests = write(tmp_path / "web.yaml", CERTIFICATE)
    scenario = write(tmp_path / "given.yaml", "given: {operators: [cert-manager]}\n")

    alone = run(manifests).stdout
    output = results_by_name(manifests, "--scenario", scenario)

    wording(line for line in alone.splitlines() if "Certificate default/web" in line)
    (issued,) = [at for at, what in output["Certificate default/web"] if "Ready=True" in what]
    (done,) = [at for at, what in output["Job default/check"] if "Complete=True" in what]
    assert 5_000 < issued < 7_000
    assert done > issued


def test_a_profile_sets_the_durations_of_an_operator(tmp_path: Path) -> None:
    manifests = write(tmp_path / "web.yaml", CERTIFICATE)
    scenario = write(tmp_path / "given.yaml", "given: {operators: [cert-manager]}\n")
    profile = write(
        tmp_path / "profile.yaml",
        "stages:\n- {when: {kind: Certificate, stage: issued}, after: 3m}\n",
    )

    output = results_by_name(manifests, "--scenario", scenario, "--profile", profile)

    (issued,) = [at for at, what in output["Certificate default/web"] if "Ready=True" in what]
    assert 180_000 < issued < 182_000


def test_an_operator_of_ones_own_can_be_given_and_its_row_wins(tmp_path: Path) -> None:
    operators = write(
        tmp_path / "operators.yaml",
        """
operators:
- name: ours
  namespace: ours
  source: the test
  workloads: [{name: ours, image: acme/ours}]
rows:
- group: cert-manager.io
  kinds: [Certificate]
  versions: [v1]
  source: the test
  operator: ours
  served_by: {names: [ours]}
  stages: [{name: done, after: 2s, writes: {phase: Stamped}}]
""",
    )
    scenario = write(tmp_path / "given.yaml", "given: {operators: [{name: ours, namespace: x}]}\n")
    manifests = write(tmp_path / "web.yaml", CERTIFICATE)

    output = results_by_name(manifests, "--scenario", scenario, "--operator-defs", operators)

    assert "Stamped" in [what for _, what in output["Certificate default/web"]]


def test_an_unknown_operator_is_one_clear_error(tmp_path: Path) -> None:
    scenario = write(tmp_path / "given.yaml", "given:\n  operators:\n  - certmanager\n")

    ran = run(SHOP, "--scenario", scenario)

    assert ran.returncode == 3
    assert any(
        "error[file.value]" in line and "`certmanager`" in line for line in ran.stderr.splitlines()
    )
    assert f"at {scenario}:3" in ran.stderr
    (hint,) = (line for line in ran.stderr.splitlines() if "`cert-manager`" in line)
    assert hint.index("`cert-manager`") < hint.index("`argo-cd`"), (
        "it is suggested before all others"
    )


def test_a_hold_of_ones_own_keeps_pods_from_being_ready(tmp_path: Path) -> None:
    pod = "metadata: {labels: {app: safe}}, spec: {containers: [{name: safe, image: 'safe:1'}]}"
    manifests = write(
        tmp_path / "safe.yaml",
        f"{{apiVersion: v1, kind: Pod, {pod.replace('metadata: {', 'metadata: {name: safe, ')}}}\n",
    )
    operators = write(
        tmp_path / "operators.yaml",
        """
holds:
- name: locked
  source: the test
  pods: {labels: [{app: safe}]}
  reason: The safe is locked
  until_jobs: ["open-*"]
""",
    )

    alone = results_by_name(manifests)["Pod default/safe"]
    held = results_by_name(manifests, "--operator-defs", operators)["Pod default/safe"]

    assert any("Ready=True" in what for _, what in alone)
    assert not any("Ready=True" in what for _, what in held)
