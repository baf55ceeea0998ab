"""Which objects are hooks, when they run, and when they are deleted."""

from __future__ import annotations

import pytest

from tests.unit.dialect.documents import HELM_HOOK, HELM_POLICY, HOOK, POLICY, noting
from tidegate.dialect.argo.hooks import DeletionPhase, Hook, read_hook
from tidegate.model.k8s.objects import Json
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import HookPolicy


def hook_of(notes: dict[str, Json]) -> Hook:
    hook = read_hook(noting(notes))
    assert hook is not None
    return hook


def phases_of(notes: dict[str, Json]) -> tuple[Phase, ...]:
    return hook_of(notes).phases


def is_nothing(notes: dict[str, Json]) -> bool:
    """Neither an ordinary object nor ever run."""
    hook = read_hook(noting(notes))
    return hook is not None and not hook.phases and not hook.deletion_phases


@pytest.mark.parametrize("notes", [{}, {POLICY: "HookSucceeded"}, {HELM_HOOK: "crd-install"}])
def test_an_object_without_a_hook_is_an_ordinary_one(notes: dict[str, Json]) -> None:
    assert read_hook(noting(notes)) is None


@pytest.mark.parametrize(
    ("word", "phase"),
    [
        ("PreSync", Phase.PRE_SYNC),
        ("Sync", Phase.SYNC),
        ("PostSync", Phase.POST_SYNC),
        ("SyncFail", Phase.SYNC_FAIL),
    ],
)
def test_each_hook_type_of_argo_cd_has_its_phase(word: str, phase: Phase) -> None:
    assert phases_of({HOOK: word}) == (phase,)


@pytest.mark.parametrize(
    ("word", "phase"),
    [
        ("pre-install", Phase.PRE_SYNC),
        ("pre-upgrade", Phase.PRE_SYNC),
        ("post-install", Phase.POST_SYNC),
        ("post-upgrade", Phase.POST_SYNC),
    ],
)
def test_helm_hooks_map_to_phases_of_argo_cd(word: str, phase: Phase) -> None:
    assert phases_of({HELM_HOOK: word}) == (phase,)


@pytest.mark.parametrize(
    "word", ["test", "pre-rollback", "post-rollback", "test-success", "crd-install ", ""]
)
def test_unsupported_helm_hooks_are_ignored(word: str) -> None:
    assert is_nothing({HELM_HOOK: word})


@pytest.mark.parametrize("word", ["presync", "Whenever", ""])
def test_a_hook_that_names_no_phase_is_left_out_of_everything(word: str) -> None:
    assert is_nothing({HOOK: word})


def test_a_hook_that_names_nothing_known_is_no_crd_of_helms_either() -> None:
    assert is_nothing({HOOK: "Whenever", HELM_HOOK: "crd-install"})


def test_a_skipped_object_is_neither_run_nor_kept() -> None:
    assert is_nothing({HOOK: "Skip"})


def test_hook_skip_takes_precedence_over_helm_hooks() -> None:
    assert is_nothing({HOOK: "Skip", HELM_HOOK: "pre-install"})


def test_skip_together_with_a_phase_is_ignored() -> None:
    assert phases_of({HOOK: "Skip, PreSync"}) == (Phase.PRE_SYNC,)


def test_a_hook_may_run_in_several_phases() -> None:
    assert phases_of({HOOK: "PreSync , PostSync"}) == (Phase.PRE_SYNC, Phase.POST_SYNC)


def test_a_repeated_phase_counts_once() -> None:
    assert phases_of({HELM_HOOK: "pre-install,pre-upgrade"}) == (Phase.PRE_SYNC,)


def test_a_crd_hook_of_helms_in_a_list_is_a_hook() -> None:
    assert phases_of({HELM_HOOK: "crd-install,pre-install"}) == (Phase.PRE_SYNC,)


def test_hooks_of_argo_cd_take_precedence_over_helm_hooks() -> None:
    assert phases_of({HOOK: "Sync", HELM_HOOK: "pre-install"}) == (Phase.SYNC,)


def test_helm_hooks_are_used_if_the_hook_of_argo_cd_is_unknown() -> None:
    assert phases_of({HOOK: "Whenever", HELM_HOOK: "post-install"}) == (Phase.POST_SYNC,)


@pytest.mark.parametrize(
    ("notes", "end"),
    [
        ({HOOK: "PreDelete"}, DeletionPhase.PRE_DELETE),
        ({HOOK: " PostDelete "}, DeletionPhase.POST_DELETE),
        ({HELM_HOOK: "pre-delete"}, DeletionPhase.PRE_DELETE),
        ({HELM_HOOK: "post-delete"}, DeletionPhase.POST_DELETE),
    ],
)
def test_a_hook_of_the_end_has_no_part_in_a_sync(
    notes: dict[str, Json], end: DeletionPhase
) -> None:
    hook = hook_of(notes)

    assert (hook.phases, hook.deletion_phases) == ((), (end,))


def test_a_hook_may_run_in_a_sync_and_at_the_end() -> None:
    hook = hook_of({HOOK: "PreSync,PostDelete"})

    assert (hook.phases, hook.deletion_phases) == ((Phase.PRE_SYNC,), (DeletionPhase.POST_DELETE,))


def test_the_ends_of_both_annotations_count() -> None:
    hook = hook_of({HOOK: "PreSync,PostDelete", HELM_HOOK: "pre-delete"})

    assert set(hook.deletion_phases) == {DeletionPhase.PRE_DELETE, DeletionPhase.POST_DELETE}


def test_a_hook_of_the_end_alone_leaves_the_phase_to_helm() -> None:
    hook = hook_of({HOOK: "PreDelete", HELM_HOOK: "pre-install"})

    assert (hook.phases, hook.deletion_phases) == ((Phase.PRE_SYNC,), (DeletionPhase.PRE_DELETE,))


def test_a_skipped_object_may_still_be_run_at_the_end() -> None:
    assert hook_of({HOOK: "Skip,PreDelete"}).deletion_phases == (DeletionPhase.PRE_DELETE,)


@pytest.mark.parametrize(
    ("notes", "policies"),
    [
        ({POLICY: "HookSucceeded"}, {HookPolicy.SUCCEEDED}),
        ({POLICY: "HookFailed, HookSucceeded"}, {HookPolicy.FAILED, HookPolicy.SUCCEEDED}),
        ({HELM_POLICY: "hook-failed"}, {HookPolicy.FAILED}),
        ({HELM_POLICY: "hook-succeeded"}, {HookPolicy.SUCCEEDED}),
        ({HELM_POLICY: "before-hook-creation"}, {HookPolicy.BEFORE_CREATION}),
        (
            {POLICY: "HookFailed", HELM_POLICY: "hook-succeeded"},
            {HookPolicy.FAILED, HookPolicy.SUCCEEDED},
        ),
    ],
)
def test_policies_of_both_annotations_count(
    notes: dict[str, Json], policies: set[HookPolicy]
) -> None:
    assert set(hook_of({HOOK: "PreSync", **notes}).policies) == policies


@pytest.mark.parametrize("word", ["", "Never", "hooksucceeded"])
def test_the_default_delete_policy_is_before_hook_creation(word: str) -> None:
    assert hook_of({HOOK: "Sync", POLICY: word}).policies == (HookPolicy.BEFORE_CREATION,)
