"""A hook that fails, with the log of its container."""

from __future__ import annotations

from tests.support.failing_migration import MIGRATION

HOOK = MIGRATION.replace(
    "metadata: {name: migrate}",
    "metadata:\n  name: migrate\n  annotations: {argocd.argoproj.io/hook: PreSync,"
    " argocd.argoproj.io/hook-delete-policy: HookSucceeded}",
)
LOGIN = """\
apiVersion: v1
kind: Secret
metadata: {name: login, annotations: {argocd.argoproj.io/sync-wave: "-1"}}
stringData: {password: hunter2-hunter2}
"""
